-- Object-relational mappers, schema tools, web applications.
SELECT `users`.* FROM `users` WHERE `users`.`email` = 'a@b.c' LIMIT 1;
SELECT 1 AS one FROM `users` WHERE `users`.`email` = BINARY 'a@b.c' LIMIT 1;
SELECT COUNT(*) FROM (SELECT 1 AS one FROM `posts` LIMIT 10 OFFSET 20) subquery_for_count;
SELECT `posts`.`id` AS t0_r0, `posts`.`title` AS t0_r1, `comments`.`id` AS t1_r0 FROM `posts` LEFT OUTER JOIN `comments` ON `comments`.`post_id` = `posts`.`id` WHERE `posts`.`published` = TRUE ORDER BY `posts`.`created_at` DESC;
SELECT column_name AS 'Field', column_type as Type FROM information_schema.columns WHERE table_schema = database() AND table_name = 'users' ORDER BY ordinal_position;
SELECT fk.referenced_table_name AS 'to_table', fk.referenced_column_name AS 'primary_key', fk.column_name AS 'column', fk.constraint_name AS 'name', fk.ordinal_position AS 'position', rc.update_rule AS 'on_update', rc.delete_rule AS 'on_delete' FROM information_schema.referential_constraints rc JOIN information_schema.key_column_usage fk USING (constraint_schema, constraint_name) WHERE fk.referenced_column_name IS NOT NULL AND fk.table_schema = database() AND fk.table_name = 'comments' AND rc.constraint_schema = database() AND rc.table_name = 'comments';
SELECT table_comment FROM information_schema.tables WHERE table_schema = database() AND table_name = 'users';
SELECT table_name FROM (SELECT * FROM information_schema.tables WHERE table_schema = database()) _subquery WHERE _subquery.table_type = 'BASE TABLE';
SET  @@SESSION.sql_mode = CONCAT(REPLACE(REPLACE(REPLACE(@@sql_mode, 'STRICT_TRANS_TABLES', ''), 'STRICT_ALL_TABLES', ''), 'TRADITIONAL', ''), ',NO_AUTO_VALUE_ON_ZERO'), @@SESSION.sql_auto_is_null = 0, @@SESSION.wait_timeout = 2147483;
SELECT GET_LOCK('db_lock', 0);
SELECT RELEASE_LOCK('db_lock');
CREATE TABLE `schema_migrations` (`version` varchar(255) NOT NULL PRIMARY KEY) CHARSET=utf8mb4;
CREATE TABLE `ar_internal_metadata` (`key` varchar(255) NOT NULL PRIMARY KEY, `value` varchar(255), `created_at` datetime(6) NOT NULL, `updated_at` datetime(6) NOT NULL);
CREATE TABLE `users` (`id` bigint NOT NULL AUTO_INCREMENT PRIMARY KEY, `email` varchar(255), `admin` tinyint(1) DEFAULT FALSE, `created_at` datetime(6) NOT NULL DEFAULT CURRENT_TIMESTAMP(6), UNIQUE INDEX `index_users_on_email` (`email`)) COLLATE=utf8mb4_0900_ai_ci;
INSERT INTO `schema_migrations` (version) VALUES ('20240101000000'), ('20240102000000');
INSERT INTO `users` (`email`,`name`) VALUES ('a','b') AS `new` ON DUPLICATE KEY UPDATE `name`=`new`.`name`;
INSERT INTO t (a,b,c) VALUES (1,2,3),(4,5,6) AS new(m,n,p) ON DUPLICATE KEY UPDATE c = m+n;
INSERT INTO `users` (`email`) VALUES ('x') ON DUPLICATE KEY UPDATE `email`=VALUES(`email`), `n` = `n` + 1;
INSERT INTO t1 SELECT * FROM (SELECT c, c+d AS e FROM t2) AS dt ON DUPLICATE KEY UPDATE b = e;
INSERT IGNORE INTO `t` () VALUES ();
INSERT LOW_PRIORITY t SET a = 1, b = DEFAULT, c = DEFAULT(c);
INSERT HIGH_PRIORITY INTO t VALUES ROW(1, 2), ROW(3, 4);
INSERT DELAYED INTO t VALUE (1);
INSERT INTO t (a) TABLE u;
INSERT INTO t PARTITION (p0) (a) SELECT 1;
INSERT INTO t (SELECT 1) UNION (SELECT 2);
INSERT INTO t WITH x AS (SELECT 1) SELECT * FROM x;
REPLACE INTO `cache` (`id`, `value`) VALUES ('k', 'v');
REPLACE LOW_PRIORITY t SELECT * FROM u;
UPDATE `users` SET `users`.`admin` = TRUE, `updated_at` = '2024-01-01 00:00:00.000000' WHERE `users`.`id` = 1;
UPDATE LOW_PRIORITY IGNORE t SET a = a + 1, b := 2 WHERE c IN (1, 2, 3) ORDER BY a DESC LIMIT 10;
UPDATE a INNER JOIN b ON a.id = b.id SET a.x = b.x, b.y = 1 WHERE a.z > 3;
UPDATE a, b SET a.x = b.x WHERE a.id = b.id;
UPDATE t AS x SET x.a = DEFAULT;
WITH c AS (SELECT 1 AS id) UPDATE t JOIN c USING (id) SET t.a = 1;
WITH c AS (SELECT 1 AS id) DELETE t FROM t JOIN c USING (id);
DELETE FROM `users` WHERE `users`.`id` = 1;
DELETE LOW_PRIORITY QUICK IGNORE FROM t WHERE a = 1 ORDER BY b LIMIT 5;
DELETE a, b.* FROM a INNER JOIN b INNER JOIN c WHERE a.id=b.id AND b.id=c.id;
DELETE FROM a, b USING a INNER JOIN b INNER JOIN c WHERE a.id=b.id;
DELETE FROM shop.a AS x PARTITION (p1) WHERE x.id = 1;
SELECT @@SQL_AUTO_IS_NULL;
SELECT VERSION(), @@sql_mode, @@default_storage_engine, @@sql_auto_is_null, @@lower_case_table_names, CONVERT_TZ('2001-01-01 01:00:00', 'UTC', 'UTC') IS NOT NULL;
SHOW FULL TABLES;
SELECT kc.`column_name`, kc.`referenced_table_name`, kc.`referenced_column_name` FROM information_schema.key_column_usage AS kc WHERE kc.table_schema = DATABASE() AND kc.table_name = 'auth_permission' AND kc.referenced_table_schema = DATABASE() AND kc.referenced_table_name IS NOT NULL AND kc.referenced_column_name IS NOT NULL;
SELECT engine FROM information_schema.tables WHERE table_name = 'x' AND table_schema = DATABASE();
SELECT (1) AS `a` FROM `django_session` WHERE `django_session`.`session_key` = 'abc' LIMIT 1;
SELECT `django_session`.`session_key` FROM `django_session` WHERE (`django_session`.`expire_date` > '2024-05-01 10:00:00.000000' AND `django_session`.`session_key` = 'k') LIMIT 21;
SELECT `t`.`id` FROM `t` WHERE (`t`.`a` = 1 AND NOT (`t`.`b` IS NULL) AND (`t`.`c` LIKE BINARY '%x%' OR `t`.`d` REGEXP '^a'));
ALTER TABLE `auth_permission` ADD CONSTRAINT `auth_permission_content_type_id_codename_01ab375a_uniq` UNIQUE (`content_type_id`, `codename`);
ALTER TABLE `auth_permission` ADD CONSTRAINT `fk` FOREIGN KEY (`content_type_id`) REFERENCES `django_content_type` (`id`);
ALTER TABLE `t` MODIFY `name` varchar(150) NULL;
ALTER TABLE `t` ALTER COLUMN `name` DROP DEFAULT;
ALTER TABLE t ADD COLUMN `extra` integer UNSIGNED DEFAULT 0 NOT NULL CHECK (`extra` >= 0), ALTER COLUMN extra SET DEFAULT 5;
CREATE TABLE `django_migrations` (`id` bigint AUTO_INCREMENT NOT NULL PRIMARY KEY, `app` varchar(255) NOT NULL, `applied` datetime(6) NOT NULL);
CREATE TABLE `auth_user_groups` (`id` bigint AUTO_INCREMENT NOT NULL PRIMARY KEY, `user_id` integer NOT NULL, CONSTRAINT `u` UNIQUE (`user_id`), CONSTRAINT `c` CHECK (`user_id` > 0) NOT ENFORCED);
select `migration` from `migrations` order by `batch` asc, `migration` asc;
select * from `jobs` where `queue` = 'default' and ((`reserved_at` is null and `available_at` <= 1714557600) or (`reserved_at` <= 1714557510)) order by `id` asc limit 1 for update skip locked;
select exists(select * from `users` where `email` = ?) as `exists`;
select count(*) as aggregate from `users` where `deleted_at` is null;
select `users`.*, (select count(*) from `posts` where `users`.`id` = `posts`.`user_id`) as `posts_count` from `users`;
select * from `a` union all select * from `b` order by `x` desc limit 3;
(select * from `a`) union (select * from `b`) order by 1;
select * from information_schema.tables where table_schema = 'laravel' and table_name = 'migrations' and table_type = 'BASE TABLE';
select table_name as `name`, (data_length + index_length) as `size`, table_comment as `comment`, engine as `engine`, table_collation as `collation` from information_schema.tables where table_schema = 'x' and table_type in ('BASE TABLE', 'SYSTEM VERSIONED') order by table_name;
create table `migrations` (`id` int unsigned not null auto_increment primary key, `migration` varchar(255) not null, `batch` int not null) default character set utf8mb4 collate 'utf8mb4_unicode_ci';
alter table `users` add unique `users_email_unique`(`email`);
alter table `sessions` add index `sessions_user_id_index`(`user_id`);
alter table `a` add constraint `a_b_foreign` foreign key (`b_id`) references `b` (`id`) on delete cascade on update set null;
alter table `t` add `col` json null after `id`, add `x` enum('a','b') not null default 'a' first, drop `y`, drop column `z`, rename column `p` to `q`, rename index `i` to `j`;
SELECT 'Hello' 'World', "double ""quoted""", 'it''s', 'a\'b\n\t\0\\\%';
SELECT option_name, option_value FROM wp_options WHERE autoload IN ( 'yes', 'on', 'auto-on', 'auto' );
SELECT SQL_CALC_FOUND_ROWS  wp_posts.ID FROM wp_posts  WHERE 1=1  AND ((wp_posts.post_type = 'post' AND (wp_posts.post_status = 'publish'))) ORDER BY wp_posts.post_date DESC LIMIT 0, 10;
SELECT FOUND_ROWS();
SELECT  t.*, tt.* FROM wp_terms AS t INNER JOIN wp_term_taxonomy AS tt ON t.term_id = tt.term_id WHERE tt.taxonomy IN ('category') AND t.term_id IN ( 1 );
SELECT YEAR(post_date) AS `year`, MONTH(post_date) AS `month`, count(ID) as posts FROM wp_posts WHERE post_type = 'post' GROUP BY YEAR(post_date), MONTH(post_date) ORDER BY post_date DESC LIMIT 12;
CREATE TABLE wp_options (
	option_id bigint(20) unsigned NOT NULL auto_increment,
	option_name varchar(191) NOT NULL default '',
	option_value longtext NOT NULL,
	autoload varchar(20) NOT NULL default 'yes',
	PRIMARY KEY  (option_id),
	UNIQUE KEY option_name (option_name),
	KEY autoload (autoload)
) DEFAULT CHARACTER SET utf8mb4 COLLATE utf8mb4_unicode_520_ci;
SELECT TABLE_SCHEMA, NULL TABLE_CATALOG, TABLE_NAME, CASE WHEN TABLE_TYPE='BASE TABLE' THEN 'TABLE' ELSE TABLE_TYPE END AS TABLE_TYPE FROM INFORMATION_SCHEMA.TABLES WHERE TABLE_SCHEMA LIKE 'x' HAVING TABLE_TYPE IN ('TABLE',null) ORDER BY TABLE_TYPE;
SELECT c.ORDINAL_POSITION, if(c.DATA_TYPE = 'set', 1, 0), substring(c.COLUMN_TYPE, locate('(', c.COLUMN_TYPE) + 1, 3) FROM information_schema.COLUMNS c;
/* ApplicationName=DBeaver 24.0.0 - Metadata */ SELECT cc.CONSTRAINT_NAME, cc.CHECK_CLAUSE, tc.TABLE_NAME FROM (SELECT CONSTRAINT_NAME, CHECK_CLAUSE FROM INFORMATION_SCHEMA.CHECK_CONSTRAINTS WHERE CONSTRAINT_SCHEMA = 'x' ORDER BY CONSTRAINT_NAME) cc, (SELECT TABLE_NAME, CONSTRAINT_NAME FROM INFORMATION_SCHEMA.TABLE_CONSTRAINTS WHERE TABLE_SCHEMA = 'x') tc WHERE cc.CONSTRAINT_NAME = tc.CONSTRAINT_NAME;
SELECT st.* FROM performance_schema.events_statements_history_long st WHERE st.EVENT_ID > 0;
SELECT LAST_INSERT_ID(), ROW_COUNT();
SELECT `User`.`id`, `Posts`.`id` AS `Posts.id` FROM `Users` AS `User` LEFT OUTER JOIN ( `UserPosts` AS `UP` INNER JOIN `Posts` AS `Posts` ON `Posts`.`id` = `UP`.`PostId`) ON `User`.`id` = `UP`.`UserId`;
SELECT DEFAULT_CHARACTER_SET_NAME as charset FROM INFORMATION_SCHEMA.SCHEMATA;
SELECT `index_name` FROM information_schema.statistics WHERE non_unique = 0 AND seq_in_index = 1 GROUP BY index_name WITH ROLLUP HAVING COUNT(*) > 1;
INSERT INTO `_prisma_migrations` (`id`, `checksum`, `started_at`) VALUES (?,?,?);
SELECT `main`.`User`.`id`, `main`.`User`.`email` FROM `main`.`User` WHERE (1=1 AND `main`.`User`.`id` IN (?,?)) ORDER BY `main`.`User`.`id` ASC LIMIT ? OFFSET ?;
SELECT JSON_UNQUOTE(JSON_EXTRACT(data, '$.name')), data->'$.a', data->>'$.b[0].c', t.data->"$.x" FROM t WHERE data->>'$.ok' = 'true';
SELECT * FROM t WHERE JSON_CONTAINS(tags, '"a"') AND 5 MEMBER OF (ids) AND JSON_OVERLAPS(a, b);
