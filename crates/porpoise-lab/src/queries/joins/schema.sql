-- A database of films: what they are, who made and played them, what is said of them.
CREATE TABLE kind_type (
  id INTEGER NOT NULL,
  kind VARCHAR(15) NOT NULL,
  PRIMARY KEY (id)
);
CREATE TABLE role_type (
  id INTEGER NOT NULL,
  role VARCHAR(32) NOT NULL,
  PRIMARY KEY (id)
);
CREATE TABLE company_type (
  id INTEGER NOT NULL,
  kind VARCHAR(32) NOT NULL,
  PRIMARY KEY (id)
);
CREATE TABLE info_type (
  id INTEGER NOT NULL,
  info VARCHAR(32) NOT NULL,
  PRIMARY KEY (id)
);
CREATE TABLE link_type (
  id INTEGER NOT NULL,
  link VARCHAR(32) NOT NULL,
  PRIMARY KEY (id)
);
CREATE TABLE completion_type (
  id INTEGER NOT NULL,
  kind VARCHAR(32) NOT NULL,
  PRIMARY KEY (id)
);
CREATE TABLE country (
  id INTEGER NOT NULL,
  code CHAR(2) NOT NULL,
  name VARCHAR(32) NOT NULL,
  PRIMARY KEY (id)
);
CREATE TABLE title (
  id INTEGER NOT NULL,
  title VARCHAR(100) NOT NULL,
  kind_id INTEGER NOT NULL,
  production_year INTEGER,
  episode_of_id INTEGER,
  season INTEGER,
  PRIMARY KEY (id),
  FOREIGN KEY (kind_id) REFERENCES kind_type (id),
  FOREIGN KEY (episode_of_id) REFERENCES title (id),
  KEY (production_year)
);
CREATE TABLE person (
  id INTEGER NOT NULL,
  name VARCHAR(60) NOT NULL,
  gender CHAR(1),
  birth_country_id INTEGER,
  PRIMARY KEY (id),
  FOREIGN KEY (birth_country_id) REFERENCES country (id)
);
CREATE TABLE company (
  id INTEGER NOT NULL,
  name VARCHAR(60) NOT NULL,
  country_id INTEGER,
  PRIMARY KEY (id),
  FOREIGN KEY (country_id) REFERENCES country (id)
);
CREATE TABLE keyword (
  id INTEGER NOT NULL,
  keyword VARCHAR(40) NOT NULL,
  PRIMARY KEY (id),
  KEY (keyword)
);
CREATE TABLE role_name (
  id INTEGER NOT NULL,
  name VARCHAR(60) NOT NULL,
  PRIMARY KEY (id)
);
CREATE TABLE cast_info (
  id INTEGER NOT NULL,
  person_id INTEGER NOT NULL,
  movie_id INTEGER NOT NULL,
  role_name_id INTEGER,
  note VARCHAR(32),
  billing INTEGER,
  role_id INTEGER NOT NULL,
  PRIMARY KEY (id),
  FOREIGN KEY (person_id) REFERENCES person (id),
  FOREIGN KEY (movie_id) REFERENCES title (id),
  FOREIGN KEY (role_name_id) REFERENCES role_name (id),
  FOREIGN KEY (role_id) REFERENCES role_type (id)
);
CREATE TABLE movie_company (
  id INTEGER NOT NULL,
  movie_id INTEGER NOT NULL,
  company_id INTEGER NOT NULL,
  company_type_id INTEGER NOT NULL,
  note VARCHAR(60),
  PRIMARY KEY (id),
  FOREIGN KEY (movie_id) REFERENCES title (id),
  FOREIGN KEY (company_id) REFERENCES company (id),
  FOREIGN KEY (company_type_id) REFERENCES company_type (id)
);
CREATE TABLE movie_keyword (
  id INTEGER NOT NULL,
  movie_id INTEGER NOT NULL,
  keyword_id INTEGER NOT NULL,
  PRIMARY KEY (id),
  FOREIGN KEY (movie_id) REFERENCES title (id),
  FOREIGN KEY (keyword_id) REFERENCES keyword (id)
);
CREATE TABLE movie_info (
  id INTEGER NOT NULL,
  movie_id INTEGER NOT NULL,
  info_type_id INTEGER NOT NULL,
  info VARCHAR(60) NOT NULL,
  PRIMARY KEY (id),
  FOREIGN KEY (movie_id) REFERENCES title (id),
  FOREIGN KEY (info_type_id) REFERENCES info_type (id)
);
CREATE TABLE movie_rating (
  id INTEGER NOT NULL,
  movie_id INTEGER NOT NULL,
  votes INTEGER NOT NULL,
  rating DECIMAL(4,2) NOT NULL,
  PRIMARY KEY (id),
  FOREIGN KEY (movie_id) REFERENCES title (id)
);
CREATE TABLE movie_link (
  id INTEGER NOT NULL,
  movie_id INTEGER NOT NULL,
  linked_movie_id INTEGER NOT NULL,
  link_type_id INTEGER NOT NULL,
  PRIMARY KEY (id),
  FOREIGN KEY (movie_id) REFERENCES title (id),
  FOREIGN KEY (linked_movie_id) REFERENCES title (id),
  FOREIGN KEY (link_type_id) REFERENCES link_type (id)
);
CREATE TABLE aka_title (
  id INTEGER NOT NULL,
  movie_id INTEGER NOT NULL,
  title VARCHAR(100) NOT NULL,
  PRIMARY KEY (id),
  FOREIGN KEY (movie_id) REFERENCES title (id)
);
CREATE TABLE aka_name (
  id INTEGER NOT NULL,
  person_id INTEGER NOT NULL,
  name VARCHAR(60) NOT NULL,
  PRIMARY KEY (id),
  FOREIGN KEY (person_id) REFERENCES person (id)
);
CREATE TABLE person_info (
  id INTEGER NOT NULL,
  person_id INTEGER NOT NULL,
  info_type_id INTEGER NOT NULL,
  info VARCHAR(60) NOT NULL,
  PRIMARY KEY (id),
  FOREIGN KEY (person_id) REFERENCES person (id),
  FOREIGN KEY (info_type_id) REFERENCES info_type (id)
);
CREATE TABLE complete_cast (
  id INTEGER NOT NULL,
  movie_id INTEGER NOT NULL,
  subject_id INTEGER NOT NULL,
  status_id INTEGER NOT NULL,
  PRIMARY KEY (id),
  FOREIGN KEY (movie_id) REFERENCES title (id),
  FOREIGN KEY (subject_id) REFERENCES completion_type (id),
  FOREIGN KEY (status_id) REFERENCES completion_type (id)
);
