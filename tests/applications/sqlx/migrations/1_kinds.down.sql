DROP TABLE kinds;
