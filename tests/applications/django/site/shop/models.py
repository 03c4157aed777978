from django.contrib import admin
from django.db import models
from django.db.models.functions import Lower


class Kind(models.Model):
    name = models.CharField(max_length=50, unique=True, db_comment="as it is shown 🐟")


class Article(models.Model):
    kind = models.ForeignKey(Kind, on_delete=models.CASCADE, related_name="articles")
    title = models.CharField(max_length=120)
    price = models.DecimalField(max_digits=8, decimal_places=2)
    made = models.DateTimeField(auto_now_add=True)
    sold_for = models.DurationField(null=True)
    data = models.JSONField(default=dict)
    picture = models.BinaryField(null=True)
    key = models.UUIDField(null=True)
    taxed = models.GeneratedField(expression=models.F("price") * 2, output_field=models.DecimalField(max_digits=9, decimal_places=2), db_persist=True)

    class Meta:
        indexes = [models.Index(fields=["title", "-price"], name="by_title"), models.Index(Lower("title"), name="by_lower")]
        constraints = [models.CheckConstraint(condition=models.Q(price__gte=0), name="price_positive")]


admin.site.register([Kind, Article])
