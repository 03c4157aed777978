import datetime
import decimal
import uuid

from django.core.cache import cache
from django.core.management.base import BaseCommand
from django.db import IntegrityError, connection, transaction
from django.db.models import Avg, Count, F, OuterRef, Q, Subquery, Window
from django.db.models.functions import Rank, TruncMonth
from django.test import Client
from shop.models import Article, Kind


class Command(BaseCommand):
    def handle(self, **_):
        kinds = Kind.objects.bulk_create([Kind(name=name) for name in ("cod", "carp", "🐟")])
        kinds = list(Kind.objects.order_by("id"))
        Article.objects.bulk_create(
            Article(kind=kinds[n % 3], title=f"article {n}", price=decimal.Decimal(n), data={"n": n, "deep": {"list": [n]}}, key=uuid.uuid4(), picture=b"\x00\xff")
            for n in range(300)
        )
        assert Article.objects.get(title="article 7").taxed == 14
        assert bytes(Article.objects.get(title="article 7").picture) == b"\x00\xff"
        assert Article.objects.filter(data__deep__list__0=5).count() == 1
        assert Article.objects.filter(data__contains={"n": 9}).count() == 1
        assert Article.objects.filter(title__iregex=r"ARTICLE 1.$").count() == 10
        counted = Kind.objects.annotate(n=Count("articles"), mean=Avg("articles__price", filter=Q(articles__price__gt=100))).order_by("id")
        assert [k.n for k in counted] == [100] * 3 and counted[0].mean is not None
        dearest = Article.objects.filter(kind=OuterRef("pk")).order_by("-price")
        assert [k.title for k in Kind.objects.annotate(title=Subquery(dearest.values("title")[:1])).order_by("id")] == ["article 297", "article 298", "article 299"]
        ranked = Article.objects.annotate(place=Window(Rank(), partition_by="kind", order_by=F("price").desc()))
        assert ranked.filter(place=1).count() == 3
        assert Article.objects.annotate(month=TruncMonth("made")).values("month").distinct().count() == 1
        Article.objects.filter(pk__gt=0).update(sold_for=datetime.timedelta(hours=3, microseconds=5))
        assert Article.objects.filter(sold_for__gt=datetime.timedelta(hours=2)).count() == 300
        try:
            with transaction.atomic():
                Article.objects.create(kind=kinds[0], title="bad", price=-1)
            raise AssertionError("a negative price")
        except IntegrityError:
            pass
        with transaction.atomic():
            first = Article.objects.select_for_update(skip_locked=True).first()
            first.price += 1
            first.save()
            try:
                with transaction.atomic():
                    Kind.objects.create(name="cod")
            except IntegrityError:
                pass
        assert Kind.objects.update_or_create(name="cod", defaults={"name": "codfish"})[1] is False
        assert Kind.objects.bulk_create([Kind(name="carp"), Kind(name="eel")], ignore_conflicts=True)
        cache.set("a", {"b": 1}, 60)
        assert cache.get("a") == {"b": 1} and cache.get("c") is None
        assert "Index" in str(Article.objects.filter(title="article 7").explain(format="TREE")) or connection.mysql_is_mariadb
        self.pages()
        first.kind.delete()
        assert Article.objects.count() == 200

    def pages(self):
        client = Client()
        assert client.login(username="ann", password="secret")
        for path in ("", "shop/article/?q=&o=2", "shop/kind/", "auth/user/", f"shop/article/{Article.objects.first().pk}/change/"):
            assert client.get(f"/admin/{path}").status_code == 200, path
        added = client.post("/admin/shop/kind/add/", {"name": "ray"})
        assert added.status_code == 302 and Kind.objects.filter(name="ray").exists()
