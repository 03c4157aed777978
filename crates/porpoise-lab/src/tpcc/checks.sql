-- TPC-C 5.11, clause 3.3.2: the consistency conditions, each as a query that finds what violates it.
-- Condition 11 is the specification's for the initial tables, with deliveries taken into account.

-- check 1: W_YTD is the sum of D_YTD
SELECT w_id, w_ytd, total FROM warehouse
JOIN (SELECT d_w_id, SUM(d_ytd) AS total FROM district GROUP BY d_w_id) AS districts ON d_w_id = w_id
WHERE w_ytd <> total LIMIT 1;

-- check 2: D_NEXT_O_ID follows the newest order, and the newest that is new
SELECT d_w_id, d_id, d_next_o_id, newest, newest_new FROM district
JOIN (SELECT o_w_id, o_d_id, MAX(o_id) AS newest FROM orders GROUP BY o_w_id, o_d_id) AS o
  ON o_w_id = d_w_id AND o_d_id = d_id
LEFT JOIN (SELECT no_w_id, no_d_id, MAX(no_o_id) AS newest_new FROM new_order GROUP BY no_w_id, no_d_id) AS n
  ON no_w_id = d_w_id AND no_d_id = d_id
WHERE d_next_o_id - 1 <> newest OR newest_new <> newest LIMIT 1;

-- check 3: the new orders of a district have no gaps
SELECT no_w_id, no_d_id, MIN(no_o_id), MAX(no_o_id), COUNT(*) FROM new_order
GROUP BY no_w_id, no_d_id HAVING MAX(no_o_id) - MIN(no_o_id) + 1 <> COUNT(*) LIMIT 1;

-- check 4: the sum of O_OL_CNT is the number of the district's order lines
SELECT o_w_id, o_d_id, promised, there FROM
  (SELECT o_w_id, o_d_id, SUM(o_ol_cnt) AS promised FROM orders GROUP BY o_w_id, o_d_id) AS o
LEFT JOIN (SELECT ol_w_id, ol_d_id, COUNT(*) AS there FROM order_line GROUP BY ol_w_id, ol_d_id) AS l
  ON ol_w_id = o_w_id AND ol_d_id = o_d_id
WHERE there IS NULL OR promised <> there LIMIT 1;

-- check 5: an order has no carrier exactly if it is new
SELECT o_w_id, o_d_id, o_id, o_carrier_id, no_o_id FROM orders
LEFT JOIN new_order ON no_w_id = o_w_id AND no_d_id = o_d_id AND no_o_id = o_id
WHERE (o_carrier_id IS NULL) <> (no_o_id IS NOT NULL) LIMIT 1;

-- check 6: O_OL_CNT is the number of the order's lines
SELECT o_w_id, o_d_id, o_id, o_ol_cnt, there FROM orders
LEFT JOIN (SELECT ol_w_id, ol_d_id, ol_o_id, COUNT(*) AS there FROM order_line GROUP BY ol_w_id, ol_d_id, ol_o_id) AS l
  ON ol_w_id = o_w_id AND ol_d_id = o_d_id AND ol_o_id = o_id
WHERE there IS NULL OR o_ol_cnt <> there LIMIT 1;

-- check 7: a line is delivered exactly if its order has a carrier
SELECT ol_w_id, ol_d_id, ol_o_id, ol_number FROM order_line
JOIN orders ON o_w_id = ol_w_id AND o_d_id = ol_d_id AND o_id = ol_o_id
WHERE (ol_delivery_d IS NULL) <> (o_carrier_id IS NULL) LIMIT 1;

-- check 8: W_YTD is the sum of the warehouse's H_AMOUNT
SELECT w_id, w_ytd, total FROM warehouse
JOIN (SELECT h_w_id, SUM(h_amount) AS total FROM history GROUP BY h_w_id) AS h ON h_w_id = w_id
WHERE w_ytd <> total LIMIT 1;

-- check 9: D_YTD is the sum of the district's H_AMOUNT
SELECT d_w_id, d_id, d_ytd, total FROM district
JOIN (SELECT h_w_id, h_d_id, SUM(h_amount) AS total FROM history GROUP BY h_w_id, h_d_id) AS h
  ON h_w_id = d_w_id AND h_d_id = d_id
WHERE d_ytd <> total LIMIT 1;

-- check 10: C_BALANCE is what was delivered less what was paid
SELECT c_w_id, c_d_id, c_id, c_balance, delivered, paid FROM customer
LEFT JOIN (SELECT o_w_id, o_d_id, o_c_id, SUM(ol_amount) AS delivered FROM orders
    JOIN order_line ON ol_w_id = o_w_id AND ol_d_id = o_d_id AND ol_o_id = o_id
    WHERE ol_delivery_d IS NOT NULL GROUP BY o_w_id, o_d_id, o_c_id) AS d
  ON o_w_id = c_w_id AND o_d_id = c_d_id AND o_c_id = c_id
LEFT JOIN (SELECT h_c_w_id, h_c_d_id, h_c_id, SUM(h_amount) AS paid FROM history
    GROUP BY h_c_w_id, h_c_d_id, h_c_id) AS p
  ON h_c_w_id = c_w_id AND h_c_d_id = c_d_id AND h_c_id = c_id
WHERE c_balance <> COALESCE(delivered, 0) - COALESCE(paid, 0) LIMIT 1;

-- check 11: the orders that are not new are the delivered ones
SELECT c_w_id, c_d_id, deliveries, total, still_new FROM
  (SELECT c_w_id, c_d_id, SUM(c_delivery_cnt) AS deliveries FROM customer GROUP BY c_w_id, c_d_id) AS c
JOIN (SELECT o_w_id, o_d_id, COUNT(*) AS total FROM orders GROUP BY o_w_id, o_d_id) AS o
  ON o_w_id = c_w_id AND o_d_id = c_d_id
LEFT JOIN (SELECT no_w_id, no_d_id, COUNT(*) AS still_new FROM new_order GROUP BY no_w_id, no_d_id) AS n
  ON no_w_id = c_w_id AND no_d_id = c_d_id
WHERE total - COALESCE(still_new, 0) <> deliveries + {delivered} LIMIT 1;

-- check 12: C_BALANCE and C_YTD_PAYMENT are together what was delivered
SELECT c_w_id, c_d_id, c_id, c_balance, c_ytd_payment, delivered FROM customer
LEFT JOIN (SELECT o_w_id, o_d_id, o_c_id, SUM(ol_amount) AS delivered FROM orders
    JOIN order_line ON ol_w_id = o_w_id AND ol_d_id = o_d_id AND ol_o_id = o_id
    WHERE ol_delivery_d IS NOT NULL GROUP BY o_w_id, o_d_id, o_c_id) AS d
  ON o_w_id = c_w_id AND o_d_id = c_d_id AND o_c_id = c_id
WHERE c_balance + c_ytd_payment <> COALESCE(delivered, 0) LIMIT 1;
