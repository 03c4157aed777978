from django.test import TestCase, TransactionTestCase
from shop.models import Kind


class InTransaction(TestCase):
    @classmethod
    def setUpTestData(cls):
        Kind.objects.create(name="cod")

    def test_it_is_there(self):
        self.assertEqual(Kind.objects.count(), 1)

    def test_it_is_there_again(self):
        Kind.objects.all().delete()
        self.assertEqual(Kind.objects.count(), 0)


class Flushed(TransactionTestCase):
    def test_nothing_is_there(self):
        self.assertEqual(Kind.objects.count(), 0)
