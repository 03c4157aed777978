-- Of the kind that applications begin with.
CREATE TABLE person (
  id BIGINT NOT NULL AUTO_INCREMENT PRIMARY KEY,
  name VARCHAR(100) NOT NULL COMMENT 'who; "quoted"',
  KEY (name)
) ENGINE=InnoDB DEFAULT CHARSET=utf8mb4;
/*!40101 INSERT INTO person (name) VALUES ('one;two') */;
DELIMITER //
CREATE TRIGGER trimmed BEFORE INSERT ON person FOR EACH ROW BEGIN
  SET NEW.name = TRIM(NEW.name);
  SET @seen = 1;
END//
CREATE PROCEDURE everybody() BEGIN SELECT COUNT(*) FROM person; END//
DELIMITER ;
