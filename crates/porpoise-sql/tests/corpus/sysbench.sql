CREATE TABLE sbtest1(
  id INTEGER NOT NULL AUTO_INCREMENT,
  k INTEGER DEFAULT '0' NOT NULL,
  c CHAR(120) DEFAULT '' NOT NULL,
  pad CHAR(60) DEFAULT '' NOT NULL,
  PRIMARY KEY (id)
) /*! ENGINE = innodb */ ;
INSERT INTO sbtest1(k, c, pad) VALUES(50147, '68487932199-96439406143-93774651418-41631865787-96406072701', '22195207048-70116052123-74140395089-76317954521-98694025897'),(50083, '13241531885-45658403807-79170748828', '38949669331');
CREATE INDEX k_1 ON sbtest1(k);
SELECT c FROM sbtest1 WHERE id=?;
SELECT c FROM sbtest1 WHERE id=4711;
SELECT c FROM sbtest1 WHERE id BETWEEN ? AND ?;
SELECT SUM(k) FROM sbtest1 WHERE id BETWEEN 5 AND 104;
SELECT c FROM sbtest1 WHERE id BETWEEN 1 AND 100 ORDER BY c;
SELECT DISTINCT c FROM sbtest1 WHERE id BETWEEN ? AND ? ORDER BY c;
UPDATE sbtest1 SET k=k+1 WHERE id=?;
UPDATE sbtest1 SET c='83868641912-28773972837' WHERE id=5021;
DELETE FROM sbtest1 WHERE id=?;
INSERT INTO sbtest1 (id, k, c, pad) VALUES (?, ?, ?, ?);
DROP TABLE IF EXISTS sbtest1;
CREATE TABLE IF NOT EXISTS warehouse1 (
    w_id smallint not null,
    w_name varchar(10),
    w_tax decimal(4,2),
    w_ytd decimal(12,2),
    primary key (w_id)
) ENGINE=innodb;
SELECT c_discount, c_last, c_credit, w_tax FROM customer1, warehouse1 WHERE w_id = 1 AND c_w_id = w_id AND c_d_id = 5 AND c_id = 2;
SELECT d_next_o_id, d_tax FROM district1 WHERE d_w_id = 1 AND d_id = 3 FOR UPDATE;
SELECT count(c_id) namecnt FROM customer1 WHERE c_w_id = 1 AND c_d_id= 2 AND c_last='BARBARBAR';
SELECT COUNT(DISTINCT (s_i_id)) FROM order_line1, stock1 WHERE ol_w_id = 1 AND ol_d_id = 2 AND ol_o_id < 3001 AND ol_o_id >= 3001 - 20 AND s_w_id= 1 AND s_i_id=ol_i_id AND s_quantity < 12;
