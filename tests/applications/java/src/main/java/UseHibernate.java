import jakarta.persistence.*;
import java.math.BigDecimal;
import java.time.Duration;
import java.time.Instant;
import java.time.LocalDate;
import java.util.*;
import org.hibernate.SessionFactory;
import org.hibernate.annotations.JdbcTypeCode;
import org.hibernate.cfg.Configuration;
import org.hibernate.type.SqlTypes;

/** Hibernate: a schema made, validated and updated; entities with what JPA has; HQL; locks and versions. */
public class UseHibernate {
    enum Role { READER, WRITER }

    @Entity(name = "Author")
    @Table(name = "author", indexes = @Index(name = "by_name", columnList = "name, born DESC"))
    public static class Author {
        @Id @GeneratedValue(strategy = GenerationType.IDENTITY) Long id;
        @Column(length = 80, unique = true, nullable = false) String name;
        LocalDate born;
        Instant made = Instant.parse("2024-01-02T03:04:05.678901Z");
        @Enumerated(EnumType.STRING) Role role = Role.READER;
        @JdbcTypeCode(SqlTypes.JSON) Map<String, String> extra = new HashMap<>();
        @ElementCollection @OrderColumn List<String> nicks = new ArrayList<>();
        @OneToMany(mappedBy = "author", cascade = CascadeType.ALL, orphanRemoval = true) List<Book> books = new ArrayList<>();
        @Version int version;
    }

    @Entity(name = "Book")
    @Inheritance(strategy = InheritanceType.JOINED)
    public static class Book {
        @Id @GeneratedValue(strategy = GenerationType.UUID) UUID id;
        @ManyToOne(fetch = FetchType.LAZY) Author author;
        String title;
        @Column(precision = 12, scale = 3) BigDecimal price;
        @Lob String text;
        @Lob byte[] cover;
        Duration reading;
        boolean sold;
    }

    @Entity(name = "Novel")
    public static class Novel extends Book {
        int pages;
    }

    @Entity(name = "Counter")
    public static class Counter {
        @Id @GeneratedValue(strategy = GenerationType.SEQUENCE) Long id;
        char letter = 'x';
        double value = 1.5;
    }

    static SessionFactory factory(String action) {
        var e = System.getenv();
        var configuration = new Configuration()
            .setProperty("hibernate.connection.url", e.get("DB_URL"))
            .setProperty("hibernate.connection.username", e.get("DB_USER"))
            .setProperty("hibernate.connection.password", e.get("DB_PASSWORD"))
            .setProperty("hibernate.hbm2ddl.auto", action)
            .setProperty("hibernate.hbm2ddl.halt_on_error", "true")
            .setProperty("hibernate.jdbc.batch_size", "30")
            .setProperty("hibernate.jdbc.time_zone", "UTC");
        for (var entity : List.of(Author.class, Book.class, Novel.class, Counter.class)) configuration.addAnnotatedClass(entity);
        return configuration.buildSessionFactory();
    }

    public static void main(String[] arguments) {
        factory("create-only").close();
        factory("validate").close();
        try (var factory = factory("update")) {
            factory.inTransaction(session -> {
                var ann = new Author();
                ann.name = "Ann 🐬";
                ann.born = LocalDate.of(1990, 1, 2);
                ann.extra.put("a", "1");
                ann.nicks.addAll(List.of("x", "y"));
                for (int n = 0; n < 50; n++) {
                    var book = n % 2 == 0 ? new Novel() : new Book();
                    if (book instanceof Novel novel) novel.pages = n;
                    book.title = "book " + n;
                    book.price = BigDecimal.valueOf(n).movePointLeft(1);
                    book.text = "t".repeat(70_000);
                    book.cover = new byte[] {0, (byte) 255};
                    book.reading = Duration.ofMinutes(n);
                    book.author = ann;
                    ann.books.add(book);
                }
                session.persist(ann);
                for (int n = 0; n < 120; n++) session.persist(new Counter());
            });
            factory.inTransaction(session -> {
                var ann = session.createQuery("from Author a left join fetch a.books where a.name like :name", Author.class).setParameter("name", "Ann%").getSingleResult();
                check(ann.books.size() == 50 && ann.nicks.equals(List.of("x", "y")) && ann.extra.get("a").equals("1"));
                check(ann.made.equals(Instant.parse("2024-01-02T03:04:05.678901Z")) && ann.born.equals(LocalDate.of(1990, 1, 2)));
                check(ann.books.get(0).text.length() == 70_000 && ann.books.get(0).cover[1] == (byte) 255);
                check(session.createQuery("select count(*) from Novel where pages between 10 and 20", Long.class).getSingleResult() == 6);
                check(session.createQuery("select sum(b.price) from Book b group by b.author having count(b) > 3", BigDecimal.class).getSingleResult().compareTo(new BigDecimal("122.5")) == 0);
                check(session.createQuery("select b.title from Book b where b.reading > :least order by b.price desc", String.class).setParameter("least", Duration.ofMinutes(40)).setFirstResult(1).setMaxResults(2).getResultList().equals(List.of("book 48", "book 47")));
                check(session.createQuery("select rank() over (partition by b.sold order by b.price desc) from Book b", Long.class).getResultList().size() == 50);
                check(session.createQuery("update Novel set pages = pages + 1 where pages > 40").executeUpdate() == 4);
                check(session.createQuery("delete from Novel where pages > 45").executeUpdate() == 2);
                check(session.createQuery("from Author", Author.class).setLockMode(LockModeType.PESSIMISTIC_WRITE).setHint("jakarta.persistence.lock.timeout", -2).getResultList().size() == 1);
            });
            stale(factory);
            try {
                factory.inTransaction(session -> {
                    var second = new Author();
                    second.name = "Ann 🐬";
                    session.persist(second);
                });
                throw new AssertionError("a second Ann");
            } catch (org.hibernate.exception.ConstraintViolationException expected) {
                check(expected.getErrorCode() == 1062 && expected.getConstraintName() != null);
            }
        }
        factory("create-drop").close();
    }

    /** Of two that change a row the second is told. */
    static void stale(SessionFactory factory) {
        try (var one = factory.openSession(); var two = factory.openSession()) {
            one.beginTransaction();
            two.beginTransaction();
            var mine = one.find(Author.class, 1L);
            var theirs = two.find(Author.class, 1L);
            mine.role = Role.WRITER;
            one.getTransaction().commit();
            theirs.role = Role.WRITER;
            theirs.name = "Bob";
            try {
                two.getTransaction().commit();
                throw new AssertionError("an old version was written");
            } catch (OptimisticLockException expected) {
                check(factory.fromSession(s -> s.find(Author.class, 1L).version) > 0);
            }
        }
    }

    static void check(boolean holds) {
        if (!holds) throw new AssertionError();
    }
}
