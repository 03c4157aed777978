//! The tables of a results folder: one for each kind of fact. Their comments are their
//! documentation, which `SHOW FULL COLUMNS` shows too.

/// What this version writes. A folder of a higher one is refused; one of a lower one gets the tables
/// that it hasn't got.
pub(super) const FORMAT: u32 = 2;

/// The schema that they lie in.
pub const SCHEMA: &str = "lab";

/// Each table's name and the statement that makes it.
pub(super) const TABLES: &[(&str, &str)] = &[
    (
        "format",
        "CREATE TABLE lab.format (
  version INT UNSIGNED NOT NULL COMMENT 'of these tables; a program that knows only lower ones refuses the folder'
) COMMENT 'One row: the version of the tables'",
    ),
    (
        "experiment",
        "CREATE TABLE lab.experiment (
  title VARCHAR(255) NOT NULL,
  seed BIGINT UNSIGNED NOT NULL COMMENT 'the order of runs and what clients draw come from it',
  runs_a_point INT UNSIGNED NOT NULL,
  seconds DOUBLE NOT NULL COMMENT 'how long a run is measured',
  baseline VARCHAR(255) COMMENT 'the series that others are compared with'
) COMMENT 'One row: what the experiment is'",
    ),
    (
        "files",
        "CREATE TABLE lab.files (
  number INT UNSIGNED NOT NULL PRIMARY KEY COMMENT '0 is the experiment''s own, others are workloads',
  name TEXT NOT NULL,
  content LONGTEXT NOT NULL
) COMMENT 'The files that the experiment was read from'",
    ),
    (
        "sessions",
        "CREATE TABLE lab.sessions (
  id INT UNSIGNED NOT NULL PRIMARY KEY,
  began DATETIME(3) NOT NULL COMMENT 'UTC',
  ended DATETIME(3) COMMENT 'UTC; NULL while it runs, and if it was killed'
) COMMENT 'Each time that porpoise lab run worked at the experiment'",
    ),
    (
        "facts",
        "CREATE TABLE lab.facts (
  session INT UNSIGNED NOT NULL,
  subject VARCHAR(128) NOT NULL COMMENT '''machine'', ''program'', a server''s name, or that of a workload by sysbench',
  name VARCHAR(128) NOT NULL,
  value TEXT NOT NULL,
  PRIMARY KEY (session, subject, name)
) COMMENT 'What the machine and the software of a session were'",
    ),
    (
        "points",
        "CREATE TABLE lab.points (
  id INT UNSIGNED NOT NULL PRIMARY KEY,
  series VARCHAR(255) NOT NULL COMMENT 'the curve that it lies on: server, way in, affinity, rate',
  server VARCHAR(255) NOT NULL,
  way VARCHAR(32) NOT NULL COMMENT 'tcp, unix, shm, fast-path, embedded, tls, full-tls, zlib or zstd',
  workload VARCHAR(255) NOT NULL,
  clients INT UNSIGNED NOT NULL,
  threads INT UNSIGNED NOT NULL COMMENT 'that have the clients',
  affinity VARCHAR(255) COMMENT 'its name; NULL: as the system likes',
  server_cpus TEXT COMMENT 'that the server''s threads run on; NULL: all',
  client_cpus TEXT COMMENT 'that the clients'' threads run on; NULL: all',
  rate DOUBLE COMMENT 'transactions that begin a second (open loop); NULL: as many as the server does'
) COMMENT 'Each combination that is measured'",
    ),
    (
        "runs",
        "CREATE TABLE lab.runs (
  id INT UNSIGNED NOT NULL PRIMARY KEY COMMENT 'in the order in which they are run',
  point INT UNSIGNED NOT NULL COMMENT 'of points',
  repetition INT UNSIGNED NOT NULL COMMENT 'which of its point''s runs it is, from 1',
  state ENUM('planned', 'done', 'failed') NOT NULL DEFAULT 'planned',
  session INT UNSIGNED COMMENT 'in which it ran',
  began DATETIME(3) COMMENT 'UTC',
  warm_up_seconds DOUBLE,
  stationary BOOLEAN COMMENT 'whether throughput was, when the warm-up ended',
  seconds DOUBLE COMMENT 'that were measured',
  transactions BIGINT UNSIGNED,
  statements BIGINT UNSIGNED,
  transactions_per_second DOUBLE,
  statements_per_second DOUBLE,
  conflicts BIGINT UNSIGNED COMMENT 'transactions rolled back because of others; errors has their numbers',
  latency_mean_ms DOUBLE COMMENT 'of transactions, as the following',
  latency_p50_ms DOUBLE,
  latency_p95_ms DOUBLE,
  latency_p99_ms DOUBLE,
  latency_p999_ms DOUBLE,
  latency_max_ms DOUBLE,
  latencies MEDIUMBLOB COMMENT 'HdrHistogram V2, compressed, in nanoseconds; its TO_BASE64 is what other tools read',
  server_user_seconds DOUBLE COMMENT 'processor time in the program; NULL, as the following, if the server''s process is not known, or is this one',
  server_system_seconds DOUBLE COMMENT 'processor time in the kernel',
  server_voluntary_switches BIGINT UNSIGNED COMMENT 'times that a thread slept',
  server_involuntary_switches BIGINT UNSIGNED COMMENT 'times that a thread had to give its CPU away',
  server_memory_bytes BIGINT UNSIGNED COMMENT 'the most that was resident, looked at each second',
  client_user_seconds DOUBLE COMMENT 'of the process of the clients, in which an embedded database is as well',
  client_system_seconds DOUBLE,
  client_voluntary_switches BIGINT UNSIGNED,
  client_involuntary_switches BIGINT UNSIGNED,
  client_memory_bytes BIGINT UNSIGNED,
  load_average DOUBLE COMMENT 'threads that wanted a CPU in the minute before',
  failure TEXT COMMENT 'why it came to nothing',
  KEY (point)
) COMMENT 'Each run, those to come included'",
    ),
    (
        "seconds",
        "CREATE TABLE lab.seconds (
  run INT UNSIGNED NOT NULL,
  second INT UNSIGNED NOT NULL COMMENT 'from 1',
  at DOUBLE NOT NULL COMMENT 'seconds since measuring began, at the end of this one',
  transactions_per_second DOUBLE NOT NULL,
  PRIMARY KEY (run, second)
) COMMENT 'Throughput in each second of a run'",
    ),
    (
        "errors",
        "CREATE TABLE lab.errors (
  run INT UNSIGNED NOT NULL,
  number INT UNSIGNED NOT NULL COMMENT 'MySQL''s: 1213 is a deadlock, 1205 a lock that was not granted in time; 0: sysbench doesn''t tell',
  count BIGINT UNSIGNED NOT NULL,
  PRIMARY KEY (run, number)
) COMMENT 'Errors that ended transactions of a run'",
    ),
    (
        "kinds",
        "CREATE TABLE lab.kinds (
  run INT UNSIGNED NOT NULL,
  number INT UNSIGNED NOT NULL COMMENT 'in the order of the workload',
  name VARCHAR(255) NOT NULL COMMENT 'of the kind of transaction',
  transactions BIGINT UNSIGNED NOT NULL,
  conflicts BIGINT UNSIGNED NOT NULL COMMENT 'those that were rolled back because of others',
  latency_mean_ms DOUBLE NOT NULL,
  latency_p50_ms DOUBLE NOT NULL,
  latency_p90_ms DOUBLE NOT NULL,
  latency_p99_ms DOUBLE NOT NULL,
  latencies MEDIUMBLOB NOT NULL COMMENT 'as in runs',
  PRIMARY KEY (run, number)
) COMMENT 'What a run came to in each kind of transaction, of workloads that have several'",
    ),
    (
        "figures",
        "CREATE TABLE lab.figures (
  run INT UNSIGNED NOT NULL,
  name VARCHAR(128) NOT NULL COMMENT 'tpmC, rows a second, and the like',
  value DOUBLE NOT NULL,
  PRIMARY KEY (run, name)
) COMMENT 'Figures of a run that its workload has of its own'",
    ),
];
