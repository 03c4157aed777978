<?php
// Doctrine: a schema from entities, found to be so; DQL, locks, transactions.
foreach (['Doctrine/Common/Cache', 'Doctrine/Common/EventManager', 'Doctrine/ORM', 'Doctrine/DBAL'] as $part) {
    if (is_file("/usr/share/php/$part/autoload.php")) require_once "/usr/share/php/$part/autoload.php";
}
if (is_file('/usr/share/php/Symfony/Component/Cache/autoload.php')) require_once '/usr/share/php/Symfony/Component/Cache/autoload.php';

use Doctrine\DBAL\DriverManager;
use Doctrine\DBAL\LockMode;
use Doctrine\ORM\EntityManager;
use Doctrine\ORM\Mapping as ORM;
use Doctrine\ORM\ORMSetup;
use Doctrine\ORM\Tools\SchemaTool;

#[ORM\Entity, ORM\Table(name: 'writer', options: ['comment' => 'who', 'charset' => 'utf8mb4']), ORM\Index(columns: ['born', 'name'], name: 'by_born')]
class Writer
{
    #[ORM\Id, ORM\Column, ORM\GeneratedValue] public ?int $id = null;
    #[ORM\Column(length: 80, unique: true, options: ['comment' => 'its "name"'])] public string $name;
    #[ORM\Column(type: 'datetime_immutable', nullable: true)] public ?DateTimeImmutable $born = null;
    #[ORM\Column(type: 'json')] public array $extra = [];
    #[ORM\Column(type: 'bigint', options: ['unsigned' => true, 'default' => 7])] public string $big = '18446744073709551615';
    #[ORM\Version, ORM\Column(type: 'integer')] public int $version;
    #[ORM\OneToMany(mappedBy: 'by', targetEntity: Book::class, cascade: ['persist', 'remove'])] public $books;
}

#[ORM\Entity]
class Book
{
    #[ORM\Id, ORM\Column(type: 'guid')] public string $id;
    #[ORM\ManyToOne(inversedBy: 'books'), ORM\JoinColumn(onDelete: 'CASCADE')] public ?Writer $by = null;
    #[ORM\Column(type: 'text')] public string $text = '';
    #[ORM\Column(type: 'decimal', precision: 10, scale: 3, options: ['default' => '1.500'])] public string $price = '0';
    #[ORM\Column(type: 'blob', nullable: true)] public $cover = null;
    #[ORM\Column(type: 'boolean', options: ['default' => false])] public bool $sold = false;
    #[ORM\Column(type: 'time', nullable: true)] public ?DateTime $at = null;
}

function check(bool $holds, $seen = null): void
{
    if (!$holds) throw new Exception('not so: ' . json_encode($seen));
}

foreach (['pdo_mysql', 'mysqli'] as $driver) {
    $config = ORMSetup::createAttributeMetadataConfiguration([__DIR__], true);
    $e = getenv();
    $connection = DriverManager::getConnection(['driver' => $driver, 'host' => $e['DB_HOST'], 'port' => (int) $e['DB_PORT'], 'user' => $e['DB_USER'], 'password' => $e['DB_PASSWORD'], 'dbname' => $e['DB_NAME'], 'charset' => 'utf8mb4'], $config);
    $em = new EntityManager($connection, $config);
    $tool = new SchemaTool($em);
    $classes = $em->getMetadataFactory()->getAllMetadata();
    $tool->createSchema($classes);
    check($tool->getUpdateSchemaSql($classes) === [], $tool->getUpdateSchemaSql($classes));
    $ann = new Writer();
    $ann->name = 'Ann 🐬';
    $ann->born = new DateTimeImmutable('2001-02-03 04:05:06');
    $ann->extra = ['a' => [1, ['b' => null]]];
    $ann->books = new Doctrine\Common\Collections\ArrayCollection();
    for ($n = 0; $n < 40; $n++) {
        $book = new Book();
        $book->id = sprintf('00000000-0000-0000-0000-%012d', $n);
        $book->by = $ann;
        $book->price = (string) ($n / 4);
        $book->text = str_repeat('x', 70000);
        $book->text = substr($book->text, 0, 60000);
        $book->cover = "\0\xFF";
        $ann->books[] = $book;
    }
    $em->persist($ann);
    $em->flush();
    $em->clear();
    $found = $em->getRepository(Writer::class)->findOneBy(['name' => 'Ann 🐬']);
    check($found->extra == ['a' => [1, ['b' => null]]] && $found->big === '18446744073709551615' && $found->born->format('H:i:s') === '04:05:06', $found);
    check($em->createQuery('SELECT SUM(b.price) FROM Book b WHERE b.by = :by GROUP BY b.by HAVING COUNT(b) > 3')->setParameter('by', $found)->getSingleScalarResult() === '195.000');
    $page = $em->createQuery('SELECT b, w FROM Book b JOIN b.by w WHERE w.name LIKE :name AND b.price > 1 ORDER BY b.price DESC')->setParameter('name', 'Ann%')->setFirstResult(2)->setMaxResults(2)->getResult();
    check(count($page) === 2 && $page[0]->price === '9.250' && stream_get_contents($page[0]->cover) === "\0\xFF", $page[0]->price);
    try {
        $connection->insert('writer', ['name' => 'Ann 🐬', 'extra' => '{}', 'version' => 1, 'big' => 1]);
        throw new Exception('a second Ann');
    } catch (Doctrine\DBAL\Exception\UniqueConstraintViolationException) {
    }
    $connection->beginTransaction();
    check($em->createQuery('SELECT w FROM Writer w')->setLockMode(LockMode::PESSIMISTIC_WRITE)->getResult() !== []);
    $em->createQuery('DELETE FROM Book b WHERE b.price < 5')->execute();
    $connection->rollBack();
    check((int) $em->createQuery('SELECT COUNT(b) FROM Book b')->getSingleScalarResult() === 40);
    $found->name = 'Bob';
    $em->flush();
    check($found->version === 2);
    $em->remove($found);
    $em->flush();
    check((int) $em->createQuery('SELECT COUNT(b) FROM Book b')->getSingleScalarResult() === 0);
    $schema = $connection->createSchemaManager();
    check($schema->introspectTable('writer')->getColumn('name')->getComment() === 'its "name"');
    $tool->dropSchema($classes);
    check($schema->listTableNames() === []);
}
