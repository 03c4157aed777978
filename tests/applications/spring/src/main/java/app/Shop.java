package app;

import jakarta.persistence.*;
import jakarta.persistence.Entity;
import java.math.BigDecimal;
import java.time.Duration;
import java.time.Instant;
import java.util.*;
import java.util.concurrent.CountDownLatch;
import java.util.concurrent.TimeUnit;
import javax.sql.DataSource;
import org.quartz.*;
import org.springframework.batch.core.*;
import org.springframework.batch.core.job.builder.JobBuilder;
import org.springframework.batch.core.launch.JobLauncher;
import org.springframework.batch.core.repository.JobRepository;
import org.springframework.batch.core.step.builder.StepBuilder;
import org.springframework.batch.item.database.builder.JdbcBatchItemWriterBuilder;
import org.springframework.batch.item.database.builder.JdbcPagingItemReaderBuilder;
import org.springframework.batch.item.database.Order;
import org.springframework.boot.SpringApplication;
import org.springframework.boot.autoconfigure.SpringBootApplication;
import org.springframework.data.domain.*;
import org.springframework.data.jpa.repository.*;
import org.springframework.data.jpa.repository.Query;
import org.springframework.jdbc.core.simple.JdbcClient;
import org.springframework.session.jdbc.JdbcIndexedSessionRepository;
import org.springframework.stereotype.Component;
import org.springframework.transaction.PlatformTransactionManager;
import org.springframework.transaction.support.TransactionTemplate;

/** Spring Boot: repositories, JDBC, a batch job in chunks, sessions, and Quartz's clustered scheduler. */
@SpringBootApplication
@org.springframework.data.jpa.repository.config.EnableJpaRepositories(considerNestedRepositories = true)
public class Shop {
    @Entity(name = "Item")
    @Table(name = "item", indexes = @Index(columnList = "name"))
    public static class Item {
        @Id @GeneratedValue(strategy = GenerationType.IDENTITY) public Long id;
        @Column(nullable = false, length = 100) public String name;
        @Column(precision = 10, scale = 2) public BigDecimal price;
        public Instant made = Instant.parse("2024-01-02T03:04:05.678901Z");
        @ElementCollection(fetch = FetchType.EAGER) public Set<String> tags = new TreeSet<>();
        @Version public int version;
    }

    public interface Items extends JpaRepository<Item, Long> {
        Page<Item> findByNameContainingAndPriceLessThan(String name, BigDecimal price, Pageable page);

        @Query("select sum(i.price) from Item i where :tag member of i.tags")
        BigDecimal sum(String tag);

        @Lock(LockModeType.PESSIMISTIC_WRITE)
        List<Item> findTop3ByOrderByIdDesc();

        @Modifying
        @Query("update Item i set i.price = i.price * 2 where i.price < :limit")
        int raise(BigDecimal limit);
    }

    static final CountDownLatch FIRED = new CountDownLatch(3);

    @Component
    public static class Tick implements org.quartz.Job {
        @Override
        public void execute(JobExecutionContext context) {
            FIRED.countDown();
        }
    }

    static void equal(Object expected, Object actual) {
        if (!Objects.equals(expected, actual)) throw new AssertionError("expected " + expected + ", got " + actual);
    }

    public static void main(String[] arguments) throws Exception {
        try (var context = SpringApplication.run(Shop.class, arguments)) {
            var transactions = context.getBean(PlatformTransactionManager.class);
            var template = new TransactionTemplate(transactions);
            repositories(context.getBean(Items.class), template);
            var jdbc = context.getBean(JdbcClient.class);
            batch(context.getBean(DataSource.class), context.getBean(JobRepository.class), context.getBean(JobLauncher.class), transactions, jdbc);
            sessions(context.getBean(DataSource.class), template);
            quartz(context.getBean(Scheduler.class), jdbc);
        }
        System.out.println("ok");
    }

    static void repositories(Items items, TransactionTemplate template) {
        items.deleteAll();
        var made = new ArrayList<Item>();
        for (int n = 0; n < 50; n++) {
            var item = new Item();
            item.name = "Käse 🧀 " + n;
            item.price = new BigDecimal(n + ".50");
            item.tags.add(n % 2 == 0 ? "even" : "odd");
            made.add(item);
        }
        items.saveAll(made);
        var page = items.findByNameContainingAndPriceLessThan("🧀", new BigDecimal("30"), PageRequest.of(1, 10, Sort.by("price").descending()));
        equal(30L, page.getTotalElements());
        equal(new BigDecimal("19.50"), page.getContent().get(0).price);
        equal(Set.of("odd"), page.getContent().get(0).tags);
        // Connector/J takes MariaDB, which says that it is 5.5.5, for a server without fractions of seconds, and sends none.
        var moment = Instant.parse("2024-01-02T03:04:05.678901Z");
        if ("mariadb".equals(System.getenv("DB_PRODUCT"))) moment = moment.truncatedTo(java.time.temporal.ChronoUnit.SECONDS);
        equal(moment, page.getContent().get(0).made);
        equal(new BigDecimal("612.50"), items.sum("even"));
        equal(10, template.execute(status -> items.raise(BigDecimal.TEN)));
        equal(3, template.execute(status -> items.findTop3ByOrderByIdDesc()).size());
        var stale = items.findAll(PageRequest.of(0, 1)).getContent().get(0);
        var fresh = items.findById(stale.id).orElseThrow();
        fresh.name = "new";
        items.save(fresh);
        stale.name = "old";
        try {
            items.save(stale);
            throw new AssertionError("a stale entity was saved");
        } catch (org.springframework.dao.OptimisticLockingFailureException expected) {
        }
        template.execute(status -> {
            items.deleteAllInBatch(made.subList(40, 50).stream().map(item -> items.getReferenceById(item.id)).filter(item -> item.tags.isEmpty()).toList());
            status.setRollbackOnly();
            return null;
        });
        equal(50L, items.count());
    }

    static void batch(DataSource source, JobRepository repository, JobLauncher launcher, PlatformTransactionManager transactions, JdbcClient jdbc) throws Exception {
        jdbc.sql("CREATE TABLE IF NOT EXISTS copied (id BIGINT PRIMARY KEY, name VARCHAR(100), price DECIMAL(10,2))").update();
        jdbc.sql("DELETE FROM copied").update();
        var reader = new JdbcPagingItemReaderBuilder<Map<String, Object>>().name("items").dataSource(source).pageSize(7)
            .selectClause("id, name, price").fromClause("item").sortKeys(Map.of("id", Order.ASCENDING))
            .rowMapper(new org.springframework.jdbc.core.ColumnMapRowMapper()).build();
        reader.afterPropertiesSet();
        var writer = new JdbcBatchItemWriterBuilder<Map<String, Object>>().dataSource(source).columnMapped()
            .sql("INSERT INTO copied VALUES (:id, :name, :price)").build();
        writer.afterPropertiesSet();
        var step = new StepBuilder("copy", repository).<Map<String, Object>, Map<String, Object>>chunk(5, transactions).reader(reader).writer(writer).build();
        var job = new JobBuilder("copying", repository).start(step).build();
        var parameters = new JobParametersBuilder().addString("run", UUID.randomUUID().toString()).toJobParameters();
        var execution = launcher.run(job, parameters);
        equal(BatchStatus.COMPLETED, execution.getStatus());
        equal(50L, jdbc.sql("SELECT COUNT(*) FROM copied JOIN item USING (id, price)").query(Long.class).single());
        equal(50L, execution.getStepExecutions().iterator().next().getWriteCount());
        equal(true, repository.isJobInstanceExists("copying", parameters));
        try {
            launcher.run(job, parameters);
            throw new AssertionError("a job ran twice");
        } catch (org.springframework.batch.core.repository.JobInstanceAlreadyCompleteException expected) {
        }
    }

    static void sessions(DataSource source, TransactionTemplate template) {
        // What makes these tables is a web application's.
        var schema = new org.springframework.jdbc.datasource.init.ResourceDatabasePopulator(new org.springframework.core.io.ClassPathResource("org/springframework/session/jdbc/schema-mysql.sql"));
        schema.setContinueOnError(true);
        schema.execute(source);
        use(new JdbcIndexedSessionRepository(new org.springframework.jdbc.core.JdbcTemplate(source), template));
    }

    static <S extends org.springframework.session.Session, R extends org.springframework.session.FindByIndexNameSessionRepository<S>> void use(R sessions) {
        var session = sessions.createSession();
        session.setAttribute("who", "anna");
        session.setAttribute(org.springframework.session.FindByIndexNameSessionRepository.PRINCIPAL_NAME_INDEX_NAME, "anna");
        session.setAttribute("basket", new ArrayList<>(List.of(1, 2, 3)));
        session.setMaxInactiveInterval(Duration.ofMinutes(5));
        sessions.save(session);
        var found = sessions.findById(session.getId());
        equal(List.of(1, 2, 3), found.getAttribute("basket"));
        found.removeAttribute("who");
        sessions.save(found);
        equal(null, sessions.findById(session.getId()).getAttribute("who"));
        equal(Set.of(session.getId()), sessions.findByPrincipalName("anna").keySet());
        sessions.deleteById(session.getId());
        equal(null, sessions.findById(session.getId()));
    }

    static void quartz(Scheduler scheduler, JdbcClient jdbc) throws Exception {
        scheduler.clear();
        var job = org.quartz.JobBuilder.newJob(Tick.class).withIdentity("tick").usingJobData("n", 1).storeDurably().build();
        var trigger = TriggerBuilder.newTrigger().withIdentity("often").forJob("tick")
            .withSchedule(SimpleScheduleBuilder.simpleSchedule().withIntervalInMilliseconds(200).withRepeatCount(2)).build();
        scheduler.addJob(job, true);
        scheduler.scheduleJob(trigger);
        var nightly = TriggerBuilder.newTrigger().withIdentity("nightly").forJob("tick").withSchedule(CronScheduleBuilder.dailyAtHourAndMinute(3, 30)).build();
        scheduler.scheduleJob(nightly);
        equal(true, FIRED.await(60, TimeUnit.SECONDS));
        // The trigger ends a moment after its last job has begun.
        for (int n = 0; n < 600 && scheduler.checkExists(trigger.getKey()); n++) Thread.sleep(100);
        equal("0 30 3 ? * *", jdbc.sql("SELECT cron_expression FROM QRTZ_CRON_TRIGGERS").query(String.class).single());
        equal(true, scheduler.deleteJob(job.getKey()));
        equal(0L, jdbc.sql("SELECT COUNT(*) FROM QRTZ_TRIGGERS").query(Long.class).single());
    }
}
