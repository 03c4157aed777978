CREATE TABLE fish (
  id BIGINT PRIMARY KEY AUTO_INCREMENT,
  kind INT UNSIGNED NOT NULL,
  name VARCHAR(40) CHARACTER SET utf8mb4 NOT NULL,
  -- Not NOT NULL: the driver decodes an ENUM only where a column has no other flag.
  size ENUM('small', 'large') DEFAULT 'small',
  weight DECIMAL(12,3),
  seen DATETIME(6),
  noted TIMESTAMP NULL DEFAULT CURRENT_TIMESTAMP,
  extra JSON,
  data VARBINARY(300),
  edible BOOLEAN NOT NULL DEFAULT FALSE,
  code VARCHAR(10) CHARACTER SET utf8mb4 COLLATE utf8mb4_bin,
  CONSTRAINT of_kind FOREIGN KEY (kind) REFERENCES kinds (id)
);
