-- A SELECT and an UPDATE of the same row in a transaction; a script for sysbench.toml.

sysbench.cmdline.options = {
  table_size = {"Number of rows", 1000},
}

function thread_init()
  connection = sysbench.sql.driver():connect()
end

function thread_done()
  connection:disconnect()
end

function prepare()
  local one = sysbench.sql.driver():connect()
  one:query("CREATE TABLE counters (id INT PRIMARY KEY, hits INT NOT NULL)")
  one:bulk_insert_init("INSERT INTO counters (id, hits) VALUES")
  for id = 1, sysbench.opt.table_size do
    one:bulk_insert_next(string.format("(%d, 0)", id))
  end
  one:bulk_insert_done()
  one:disconnect()
end

function cleanup()
  local one = sysbench.sql.driver():connect()
  one:query("DROP TABLE IF EXISTS counters")
  one:disconnect()
end

function event()
  local id = sysbench.rand.default(1, sysbench.opt.table_size)
  connection:query("BEGIN")
  connection:query("SELECT hits FROM counters WHERE id = " .. id)
  connection:query("UPDATE counters SET hits = hits + 1 WHERE id = " .. id)
  connection:query("COMMIT")
end

-- Transactions that lose against another one are begun again, as sysbench's own scripts do.
function sysbench.hooks.sql_error_ignorable(error)
  return error.sql_errno == 1213 or error.sql_errno == 1205 or error.sql_errno == 1020
end
