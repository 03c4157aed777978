-- Of two statements, with a comment before them.
CREATE TABLE kinds (
  id INT UNSIGNED PRIMARY KEY AUTO_INCREMENT,
  name VARCHAR(40) NOT NULL UNIQUE,
  CONSTRAINT named CHECK (name <> '')
);
INSERT INTO kinds (name) VALUES ('bony'), ('flat');
