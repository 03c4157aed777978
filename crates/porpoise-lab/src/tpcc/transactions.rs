//! The five transactions (clauses 2.4 to 2.8), and a terminal that does them in the mix of clause
//! 5.2.3.
//!
//! Each transaction is a row of statements with its place in it. Values come from the input, which is
//! drawn beforehand, and from rows of the replies so far:
//!
//! ```text
//!   input ──► next: statement and values ──► server
//!                 ▲                            │
//!                 └──────── row: what it said ◄┘
//! ```
//!
//! A transaction that was rolled back because of another one is done again with the same input, so
//! that the mix stays what it is.

use std::time::Duration;

use fastrand::Rng;
use porpoise_client::{Error, Row};

use super::{Constants, DISTRICTS, NAMES, TpccPlan, last_name, non_uniform};
use crate::workload::{Course, Filled};

use Filled::{Int, Text, UInt};

/// A kind of transaction.
pub(super) struct Kind {
    pub name: &'static str,
    /// Of the 23 cards of a deck.
    cards: usize,
    /// Seconds that its input takes to key, and that a terminal thinks after it, on average.
    keying: f64,
    thinking: f64,
}

pub(super) const KINDS: [Kind; 5] = [
    Kind {
        name: "New-Order",
        cards: 10,
        keying: 18.0,
        thinking: 12.0,
    },
    Kind {
        name: "Payment",
        cards: 10,
        keying: 3.0,
        thinking: 12.0,
    },
    Kind {
        name: "Order-Status",
        cards: 1,
        keying: 2.0,
        thinking: 10.0,
    },
    Kind {
        name: "Delivery",
        cards: 1,
        keying: 2.0,
        thinking: 5.0,
    },
    Kind {
        name: "Stock-Level",
        cards: 1,
        keying: 2.0,
        thinking: 5.0,
    },
];

/// Thinking takes at most so many times what it takes on average (clause 5.2.5.4).
const THINKING_MAX: f64 = 10.0;

/// The statements' numbers in [`STATEMENTS`].
mod number {
    pub(super) const BEGIN: usize = 0;
    pub(super) const COMMIT: usize = 1;
    pub(super) const ROLLBACK: usize = 2;
    pub(super) const WAREHOUSE_TAX: usize = 3;
    pub(super) const DISTRICT_NEXT: usize = 4;
    pub(super) const TAKE_ORDER_ID: usize = 5;
    pub(super) const CUSTOMER_DISCOUNT: usize = 6;
    pub(super) const INSERT_ORDER: usize = 7;
    pub(super) const INSERT_NEW_ORDER: usize = 8;
    pub(super) const ITEM: usize = 9;
    pub(super) const UPDATE_STOCK: usize = 10;
    pub(super) const INSERT_LINE: usize = 11;
    pub(super) const PAY_WAREHOUSE: usize = 12;
    pub(super) const WAREHOUSE_ADDRESS: usize = 13;
    pub(super) const PAY_DISTRICT: usize = 14;
    pub(super) const DISTRICT_ADDRESS: usize = 15;
    pub(super) const CUSTOMERS_OF_NAME: usize = 16;
    pub(super) const PAYING_CUSTOMER: usize = 17;
    pub(super) const CUSTOMER_DATA: usize = 18;
    pub(super) const PAY_CUSTOMER: usize = 19;
    pub(super) const PAY_CUSTOMER_DATA: usize = 20;
    pub(super) const INSERT_HISTORY: usize = 21;
    pub(super) const CUSTOMER: usize = 22;
    pub(super) const LAST_ORDER: usize = 23;
    pub(super) const LINES: usize = 24;
    pub(super) const OLDEST_NEW: usize = 25;
    pub(super) const DELETE_NEW: usize = 26;
    pub(super) const CUSTOMER_OF_ORDER: usize = 27;
    pub(super) const SET_CARRIER: usize = 28;
    pub(super) const DELIVER_LINES: usize = 29;
    pub(super) const SUM_OF_LINES: usize = 30;
    pub(super) const CREDIT_CUSTOMER: usize = 31;
    pub(super) const NEXT_ORDER: usize = 32;
    pub(super) const LOW_STOCK: usize = 33;
    /// Of the first district; those of the others follow.
    pub(super) const STOCK: usize = 34;
}

macro_rules! stock_statements {
    ($($district:literal)*) => {
        [$(concat!(
            "SELECT s_quantity, s_data, s_dist_", $district,
            " FROM stock WHERE s_i_id = ? AND s_w_id = ? FOR UPDATE"
        )),*]
    };
}

const OF_STOCK: [&str; 10] = stock_statements!("01" "02" "03" "04" "05" "06" "07" "08" "09" "10");

/// All statements.
pub(super) const STATEMENTS: [&str; number::STOCK + 10] = {
    let first = [
        "BEGIN",
        "COMMIT",
        "ROLLBACK",
        "SELECT w_tax FROM warehouse WHERE w_id = ?",
        "SELECT d_tax, d_next_o_id FROM district WHERE d_w_id = ? AND d_id = ? FOR UPDATE",
        "UPDATE district SET d_next_o_id = d_next_o_id + 1 WHERE d_w_id = ? AND d_id = ?",
        "SELECT c_discount, c_last, c_credit FROM customer WHERE c_w_id = ? AND c_d_id = ? AND c_id = ?",
        "INSERT INTO orders (o_id, o_d_id, o_w_id, o_c_id, o_entry_d, o_ol_cnt, o_all_local) VALUES (?, ?, ?, ?, NOW(), ?, ?)",
        "INSERT INTO new_order (no_o_id, no_d_id, no_w_id) VALUES (?, ?, ?)",
        "SELECT i_price, i_name, i_data FROM item WHERE i_id = ?",
        "UPDATE stock SET s_quantity = ?, s_ytd = s_ytd + ?, s_order_cnt = s_order_cnt + 1, s_remote_cnt = s_remote_cnt + ? WHERE s_i_id = ? AND s_w_id = ?",
        "INSERT INTO order_line (ol_o_id, ol_d_id, ol_w_id, ol_number, ol_i_id, ol_supply_w_id, ol_quantity, ol_amount, ol_dist_info) VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?)",
        "UPDATE warehouse SET w_ytd = w_ytd + ? WHERE w_id = ?",
        "SELECT w_street_1, w_street_2, w_city, w_state, w_zip, w_name FROM warehouse WHERE w_id = ?",
        "UPDATE district SET d_ytd = d_ytd + ? WHERE d_w_id = ? AND d_id = ?",
        "SELECT d_street_1, d_street_2, d_city, d_state, d_zip, d_name FROM district WHERE d_w_id = ? AND d_id = ?",
        "SELECT c_id FROM customer WHERE c_w_id = ? AND c_d_id = ? AND c_last = ? ORDER BY c_first",
        "SELECT c_first, c_middle, c_last, c_street_1, c_street_2, c_city, c_state, c_zip, c_phone, c_credit, c_credit_lim, c_discount, c_balance, c_since FROM customer WHERE c_w_id = ? AND c_d_id = ? AND c_id = ? FOR UPDATE",
        "SELECT c_data FROM customer WHERE c_w_id = ? AND c_d_id = ? AND c_id = ?",
        "UPDATE customer SET c_balance = c_balance - ?, c_ytd_payment = c_ytd_payment + ?, c_payment_cnt = c_payment_cnt + 1 WHERE c_w_id = ? AND c_d_id = ? AND c_id = ?",
        "UPDATE customer SET c_balance = c_balance - ?, c_ytd_payment = c_ytd_payment + ?, c_payment_cnt = c_payment_cnt + 1, c_data = ? WHERE c_w_id = ? AND c_d_id = ? AND c_id = ?",
        "INSERT INTO history (h_c_id, h_c_d_id, h_c_w_id, h_d_id, h_w_id, h_date, h_amount, h_data) VALUES (?, ?, ?, ?, ?, NOW(), ?, ?)",
        "SELECT c_balance, c_first, c_middle, c_last FROM customer WHERE c_w_id = ? AND c_d_id = ? AND c_id = ?",
        "SELECT o_id, o_entry_d, o_carrier_id FROM orders WHERE o_w_id = ? AND o_d_id = ? AND o_c_id = ? ORDER BY o_id DESC LIMIT 1",
        "SELECT ol_i_id, ol_supply_w_id, ol_quantity, ol_amount, ol_delivery_d FROM order_line WHERE ol_w_id = ? AND ol_d_id = ? AND ol_o_id = ?",
        "SELECT no_o_id FROM new_order WHERE no_w_id = ? AND no_d_id = ? ORDER BY no_o_id LIMIT 1 FOR UPDATE",
        "DELETE FROM new_order WHERE no_w_id = ? AND no_d_id = ? AND no_o_id = ?",
        "SELECT o_c_id FROM orders WHERE o_w_id = ? AND o_d_id = ? AND o_id = ? FOR UPDATE",
        "UPDATE orders SET o_carrier_id = ? WHERE o_w_id = ? AND o_d_id = ? AND o_id = ?",
        "UPDATE order_line SET ol_delivery_d = NOW() WHERE ol_w_id = ? AND ol_d_id = ? AND ol_o_id = ?",
        "SELECT SUM(ol_amount) FROM order_line WHERE ol_w_id = ? AND ol_d_id = ? AND ol_o_id = ? FOR UPDATE",
        "UPDATE customer SET c_balance = c_balance + ?, c_delivery_cnt = c_delivery_cnt + 1 WHERE c_w_id = ? AND c_d_id = ? AND c_id = ?",
        "SELECT d_next_o_id FROM district WHERE d_w_id = ? AND d_id = ?",
        "SELECT COUNT(DISTINCT s_i_id) FROM order_line JOIN stock ON s_w_id = ol_w_id AND s_i_id = ol_i_id WHERE ol_w_id = ? AND ol_d_id = ? AND ol_o_id < ? AND ol_o_id >= ? AND s_quantity < ?",
    ];
    let mut all = [""; number::STOCK + 10];
    let mut at = 0;
    while at < all.len() {
        all[at] = if at < number::STOCK {
            first[at]
        } else {
            OF_STOCK[at - number::STOCK]
        };
        at += 1;
    }
    all
};

/// A client: a terminal of a warehouse.
pub(super) struct Terminal {
    plan: TpccPlan,
    constants: Constants,
    warehouse: u64,
    /// For Stock-Level.
    district: u64,
    /// The cards that are left, numbers of kinds.
    deck: Vec<usize>,
    kind: usize,
    /// As it was drawn.
    input: Transaction,
    /// How far it is.
    current: Transaction,
    is_done: bool,
}

impl Terminal {
    pub(super) fn new(plan: &TpccPlan, constants: &Constants, client: usize) -> Self {
        let client = client as u64;
        let delivery = Transaction::Delivery(Delivery::default());
        Self {
            plan: *plan,
            constants: *constants,
            warehouse: client % plan.warehouses + 1,
            district: client / plan.warehouses % DISTRICTS + 1,
            deck: Vec::new(),
            kind: 0,
            input: delivery.clone(),
            current: delivery,
            is_done: true,
        }
    }

    fn draw_card(&mut self, random: &mut Rng) -> usize {
        if self.deck.is_empty() {
            let cards = KINDS.iter().enumerate();
            let cards = cards.flat_map(|(kind, of)| std::iter::repeat_n(kind, of.cards));
            self.deck = cards.collect();
            random.shuffle(&mut self.deck);
        }
        self.deck.pop().unwrap_or_default()
    }

    fn draw_input(&self, random: &mut Rng) -> Transaction {
        match self.kind {
            0 => Transaction::NewOrder(self.new_order(random)),
            1 => Transaction::Payment(self.payment(random)),
            2 => {
                let district = random.u64(1..=DISTRICTS);
                Transaction::OrderStatus(OrderStatus {
                    customer: self.customer(random, self.warehouse, district),
                    ..OrderStatus::default()
                })
            }
            3 => Transaction::Delivery(Delivery {
                warehouse: self.warehouse,
                carrier: random.u64(1..=10),
                district: 1,
                ..Delivery::default()
            }),
            _ => Transaction::StockLevel(StockLevel {
                warehouse: self.warehouse,
                district: self.district,
                threshold: random.u64(10..=20),
                ..StockLevel::default()
            }),
        }
    }

    fn new_order(&self, random: &mut Rng) -> NewOrder {
        let mut lines: Vec<Line> = (0..random.usize(5..=15))
            .map(|_| Line {
                item: non_uniform(random, 8191, self.constants.item, 1, self.plan.items),
                // One of a hundred lines is supplied by another warehouse.
                supplier: match random.u64(1..=100) {
                    1 => self.other_warehouse(random),
                    _ => self.warehouse,
                },
                quantity: random.u64(1..=10),
                ..Line::default()
            })
            .collect();
        // One of a hundred orders has a mistake in it: its last item doesn't exist.
        if random.u64(1..=100) == 1
            && let Some(last) = lines.last_mut()
        {
            last.item = self.plan.items + 1;
        }
        NewOrder {
            warehouse: self.warehouse,
            district: random.u64(1..=DISTRICTS),
            customer: self.customer_id(random),
            lines,
            ..NewOrder::default()
        }
    }

    fn payment(&self, random: &mut Rng) -> Payment {
        let district = random.u64(1..=DISTRICTS);
        // Of a hundred customers, 15 pay at another warehouse than their own.
        let (of_warehouse, of_district) = match random.u64(1..=100) {
            1..=85 => (self.warehouse, district),
            _ => (self.other_warehouse(random), random.u64(1..=DISTRICTS)),
        };
        Payment {
            warehouse: self.warehouse,
            district,
            customer: self.customer(random, of_warehouse, of_district),
            amount: random.i64(100..=500_000),
            ..Payment::default()
        }
    }

    /// Its own, if there is no other.
    fn other_warehouse(&self, random: &mut Rng) -> u64 {
        match self.plan.warehouses {
            1 => self.warehouse,
            all => {
                let other = random.u64(1..all);
                other + u64::from(other >= self.warehouse)
            }
        }
    }

    fn customer_id(&self, random: &mut Rng) -> u64 {
        non_uniform(
            random,
            1023,
            self.constants.customer,
            1,
            self.plan.customers,
        )
    }

    /// Of a hundred customers, 60 are sought by their name.
    fn customer(&self, random: &mut Rng, warehouse: u64, district: u64) -> Customer {
        let mut customer = Customer {
            warehouse,
            district,
            ..Customer::default()
        };
        match random.u64(1..=100) {
            1..=60 => {
                let number = non_uniform(random, 255, self.constants.name, 0, NAMES - 1);
                customer.name = Some(last_name(number % self.plan.customers.min(NAMES)));
            }
            _ => customer.id = self.customer_id(random),
        }
        customer
    }
}

impl Course for Terminal {
    fn begin(&mut self, random: &mut Rng) -> Duration {
        if !self.is_done {
            self.current = self.input.clone();
            return Duration::ZERO;
        }
        let thought = KINDS[self.kind].thinking;
        self.kind = self.draw_card(random);
        self.input = self.draw_input(random);
        self.current = self.input.clone();
        self.is_done = false;
        let thinking = -(1.0 - random.f64()).ln().max(-THINKING_MAX) * thought;
        let seconds = (thinking + KINDS[self.kind].keying) * self.plan.think_time;
        Duration::from_secs_f64(seconds)
    }

    fn next(&mut self, _: &mut Rng, values: &mut Vec<Filled>) -> Option<usize> {
        let next = match &mut self.current {
            Transaction::NewOrder(one) => one.next(values),
            Transaction::Payment(one) => one.next(values),
            Transaction::OrderStatus(one) => one.next(values),
            Transaction::Delivery(one) => one.next(values),
            Transaction::StockLevel(one) => one.next(values),
        };
        self.is_done = next.is_none();
        next
    }

    fn row(&mut self, row: &Row<'_>) -> Result<(), Error> {
        match &mut self.current {
            Transaction::NewOrder(one) => one.row(row),
            Transaction::Payment(one) => one.row(row),
            Transaction::OrderStatus(one) => one.row(row),
            Transaction::Delivery(one) => one.row(row),
            Transaction::StockLevel(one) => one.row(row),
        }
    }

    fn kind(&self) -> usize {
        self.kind
    }
}

#[derive(Clone)]
enum Transaction {
    NewOrder(NewOrder),
    Payment(Payment),
    OrderStatus(OrderStatus),
    Delivery(Delivery),
    StockLevel(StockLevel),
}

/// A customer that is sought by name, or by number.
#[derive(Clone, Default)]
struct Customer {
    warehouse: u64,
    district: u64,
    name: Option<String>,
    /// Known from the beginning, or when all of the name have been seen.
    id: u64,
    of_name: Vec<u64>,
}

impl Customer {
    /// The search by name, if it is needed.
    fn search(&mut self, values: &mut Vec<Filled>) -> Option<usize> {
        let name = self.name.take()?;
        values.extend([UInt(self.warehouse), UInt(self.district), Text(name)]);
        Some(number::CUSTOMERS_OF_NAME)
    }

    /// Its number: of those with the name, the one in the middle.
    fn id(&mut self) -> u64 {
        if self.id == 0 {
            let middle = self.of_name.len().div_ceil(2).saturating_sub(1);
            self.id = self.of_name.get(middle).copied().unwrap_or(0);
        }
        self.id
    }

    fn key(&mut self) -> [Filled; 3] {
        [UInt(self.warehouse), UInt(self.district), UInt(self.id())]
    }
}

/// Hundredths as a number with two places.
fn money(hundredths: i64) -> Filled {
    let sign = if hundredths < 0 { "-" } else { "" };
    let amount = hundredths.unsigned_abs();
    Text(format!("{sign}{}.{:02}", amount / 100, amount % 100))
}

fn hundredths(row: &Row<'_>, column: usize) -> Result<i64, Error> {
    let amount: f64 = row.get(column)?;
    Ok((amount * 100.0).round() as i64)
}

#[derive(Clone, Default)]
struct NewOrder {
    warehouse: u64,
    district: u64,
    customer: u64,
    lines: Vec<Line>,
    /// The statements that were sent.
    sent: usize,
    order: u64,
    /// What the last statement was, whose rows come.
    asked: usize,
    /// The item that was asked for exists.
    is_there: bool,
    is_over: bool,
}

#[derive(Clone, Default)]
struct Line {
    item: u64,
    supplier: u64,
    quantity: u64,
    /// In hundredths.
    price: i64,
    in_stock: i64,
    information: String,
}

impl NewOrder {
    /// Statements before those of the lines, and of each line.
    const HEAD: usize = 7;
    const OF_LINE: usize = 4;

    fn next(&mut self, values: &mut Vec<Filled>) -> Option<usize> {
        let [w, d] = [UInt(self.warehouse), UInt(self.district)];
        let at = self.sent;
        self.sent += 1;
        self.asked = match at {
            _ if self.is_over => return None,
            0 => number::BEGIN,
            1 => {
                values.push(w);
                number::WAREHOUSE_TAX
            }
            2 => {
                values.extend([w, d]);
                number::DISTRICT_NEXT
            }
            3 => {
                values.extend([w, d]);
                number::TAKE_ORDER_ID
            }
            4 => {
                values.extend([w, d, UInt(self.customer)]);
                number::CUSTOMER_DISCOUNT
            }
            5 => {
                let is_local = self
                    .lines
                    .iter()
                    .all(|line| line.supplier == self.warehouse);
                let (lines, is_local) = (self.lines.len() as u64, u64::from(is_local));
                values.extend([UInt(self.order), d, w, UInt(self.customer)]);
                values.extend([UInt(lines), UInt(is_local)]);
                number::INSERT_ORDER
            }
            6 => {
                values.extend([UInt(self.order), d, w]);
                number::INSERT_NEW_ORDER
            }
            _ => {
                let (line, part) = (
                    (at - Self::HEAD) / Self::OF_LINE,
                    (at - Self::HEAD) % Self::OF_LINE,
                );
                match line < self.lines.len() {
                    true => self.of_line(line, part, values),
                    false => {
                        self.is_over = true;
                        number::COMMIT
                    }
                }
            }
        };
        Some(self.asked)
    }

    fn of_line(&mut self, at: usize, part: usize, values: &mut Vec<Filled>) -> usize {
        let line = &self.lines[at];
        let (item, supplier) = (UInt(line.item), UInt(line.supplier));
        match part {
            0 => {
                self.is_there = false;
                values.push(item);
                number::ITEM
            }
            1 if !self.is_there => {
                self.is_over = true;
                number::ROLLBACK
            }
            1 => {
                values.extend([item, supplier]);
                number::STOCK + self.district as usize - 1
            }
            2 => {
                let quantity = line.quantity as i64;
                let refill = if line.in_stock >= quantity + 10 {
                    0
                } else {
                    91
                };
                let is_remote = u64::from(line.supplier != self.warehouse);
                values.extend([Int(line.in_stock - quantity + refill), Int(quantity)]);
                values.extend([UInt(is_remote), item, supplier]);
                number::UPDATE_STOCK
            }
            _ => {
                values.extend([UInt(self.order), UInt(self.district), UInt(self.warehouse)]);
                values.extend([UInt(at as u64 + 1), item, supplier, UInt(line.quantity)]);
                values.extend([
                    money(line.price * line.quantity as i64),
                    Text(line.information.clone()),
                ]);
                number::INSERT_LINE
            }
        }
    }

    fn row(&mut self, row: &Row<'_>) -> Result<(), Error> {
        let line = self.sent.saturating_sub(Self::HEAD + 1) / Self::OF_LINE;
        match (self.asked, self.lines.get_mut(line)) {
            (number::DISTRICT_NEXT, _) => self.order = row.get(1)?,
            (number::ITEM, Some(line)) => {
                self.is_there = true;
                line.price = hundredths(row, 0)?;
            }
            (number::STOCK.., Some(line)) => {
                line.in_stock = row.get(0)?;
                line.information = row.get(2)?;
            }
            _ => {}
        }
        Ok(())
    }
}

#[derive(Clone, Default)]
struct Payment {
    warehouse: u64,
    district: u64,
    customer: Customer,
    /// In hundredths.
    amount: i64,
    sent: usize,
    asked: usize,
    names: [String; 2],
    has_bad_credit: bool,
    data: String,
}

impl Payment {
    /// A customer's data is cut behind this many characters.
    const DATA_MAX: usize = 500;

    fn next(&mut self, values: &mut Vec<Filled>) -> Option<usize> {
        let [w, d] = [UInt(self.warehouse), UInt(self.district)];
        let amount = money(self.amount);
        let at = self.sent;
        self.sent += 1;
        self.asked = match at {
            0 => number::BEGIN,
            1 => {
                values.extend([amount, w]);
                number::PAY_WAREHOUSE
            }
            2 => {
                values.push(w);
                number::WAREHOUSE_ADDRESS
            }
            3 => {
                values.extend([amount, w, d]);
                number::PAY_DISTRICT
            }
            4 => {
                values.extend([w, d]);
                number::DISTRICT_ADDRESS
            }
            5 => match self.customer.search(values) {
                Some(search) => search,
                None => return self.next_customer(values),
            },
            6 => return self.next_customer(values),
            7 => {
                let [a, b, c] = self.customer.key();
                let name = self.names.join("    ");
                values.extend([c, b, a, d, w, amount, Text(name)]);
                number::INSERT_HISTORY
            }
            8 => number::COMMIT,
            _ => return None,
        };
        Some(self.asked)
    }

    /// Reads the customer, its data if its credit is bad, and changes it: the sixth place.
    fn next_customer(&mut self, values: &mut Vec<Filled>) -> Option<usize> {
        let key = self.customer.key();
        let amount = money(self.amount);
        self.sent = 6;
        self.asked = match (self.asked, self.has_bad_credit) {
            (number::PAYING_CUSTOMER, true) => {
                values.extend(key);
                number::CUSTOMER_DATA
            }
            (number::PAYING_CUSTOMER, false) => {
                self.sent = 7;
                values.extend([amount.clone(), amount]);
                values.extend(key);
                number::PAY_CUSTOMER
            }
            (number::CUSTOMER_DATA, _) => {
                self.sent = 7;
                let Customer {
                    warehouse,
                    district,
                    id,
                    ..
                } = &self.customer;
                let (own_district, own_warehouse) = (self.district, self.warehouse);
                let mut data = format!(
                    "{id} {district} {warehouse} {own_district} {own_warehouse} {} | {}",
                    self.amount, self.data
                );
                data.truncate(Self::DATA_MAX);
                values.extend([amount.clone(), amount, Text(data)]);
                values.extend(key);
                number::PAY_CUSTOMER_DATA
            }
            _ => {
                values.extend(key);
                number::PAYING_CUSTOMER
            }
        };
        Some(self.asked)
    }

    fn row(&mut self, row: &Row<'_>) -> Result<(), Error> {
        match self.asked {
            number::WAREHOUSE_ADDRESS => self.names[0] = row.get(5)?,
            number::DISTRICT_ADDRESS => self.names[1] = row.get(5)?,
            number::CUSTOMERS_OF_NAME => self.customer.of_name.push(row.get(0)?),
            number::PAYING_CUSTOMER => self.has_bad_credit = row.get::<&str>(9)? == "BC",
            number::CUSTOMER_DATA => self.data = row.get(0)?,
            _ => {}
        }
        Ok(())
    }
}

#[derive(Clone, Default)]
struct OrderStatus {
    customer: Customer,
    sent: usize,
    asked: usize,
    order: u64,
}

impl OrderStatus {
    fn next(&mut self, values: &mut Vec<Filled>) -> Option<usize> {
        if self.sent == 1
            && let Some(search) = self.customer.search(values)
        {
            self.asked = search;
            return Some(search);
        }
        let at = self.sent;
        self.sent += 1;
        self.asked = match at {
            0 => number::BEGIN,
            1 => {
                values.extend(self.customer.key());
                number::CUSTOMER
            }
            2 => {
                values.extend(self.customer.key());
                number::LAST_ORDER
            }
            3 => {
                let [w, d, _] = self.customer.key();
                values.extend([w, d, UInt(self.order)]);
                number::LINES
            }
            4 => number::COMMIT,
            _ => return None,
        };
        Some(self.asked)
    }

    fn row(&mut self, row: &Row<'_>) -> Result<(), Error> {
        match self.asked {
            number::CUSTOMERS_OF_NAME => self.customer.of_name.push(row.get(0)?),
            number::LAST_ORDER => self.order = row.get(0)?,
            _ => {}
        }
        Ok(())
    }
}

#[derive(Clone, Default)]
struct Delivery {
    warehouse: u64,
    carrier: u64,
    /// The one that is delivered in.
    district: u64,
    asked: usize,
    has_begun: bool,
    order: Option<u64>,
    customer: u64,
    /// In hundredths.
    sum: i64,
}

impl Delivery {
    fn next(&mut self, values: &mut Vec<Filled>) -> Option<usize> {
        if !self.has_begun {
            self.has_begun = true;
            self.asked = number::BEGIN;
            return Some(self.asked);
        }
        let [w, d] = [UInt(self.warehouse), UInt(self.district)];
        let order = UInt(self.order.unwrap_or(0));
        self.asked = match self.asked {
            number::COMMIT => return None,
            number::OLDEST_NEW if self.order.is_some() => {
                values.extend([w, d, order]);
                number::DELETE_NEW
            }
            number::DELETE_NEW => {
                values.extend([w, d, order]);
                number::CUSTOMER_OF_ORDER
            }
            number::CUSTOMER_OF_ORDER => {
                values.extend([UInt(self.carrier), w, d, order]);
                number::SET_CARRIER
            }
            number::SET_CARRIER => {
                values.extend([w, d, order]);
                number::DELIVER_LINES
            }
            number::DELIVER_LINES => {
                values.extend([w, d, order]);
                number::SUM_OF_LINES
            }
            number::SUM_OF_LINES => {
                values.extend([money(self.sum), w, d, UInt(self.customer)]);
                number::CREDIT_CUSTOMER
            }
            before => {
                // The next district: this one is done, or has no new order.
                if before != number::BEGIN {
                    self.district += 1;
                }
                self.order = None;
                if self.district > DISTRICTS {
                    self.asked = number::COMMIT;
                    return Some(self.asked);
                }
                values.extend([w, UInt(self.district)]);
                number::OLDEST_NEW
            }
        };
        Some(self.asked)
    }

    fn row(&mut self, row: &Row<'_>) -> Result<(), Error> {
        match self.asked {
            number::OLDEST_NEW => self.order = Some(row.get(0)?),
            number::CUSTOMER_OF_ORDER => self.customer = row.get(0)?,
            number::SUM_OF_LINES => self.sum = hundredths(row, 0)?,
            _ => {}
        }
        Ok(())
    }
}

#[derive(Clone, Default)]
struct StockLevel {
    warehouse: u64,
    district: u64,
    threshold: u64,
    sent: usize,
    asked: usize,
    next_order: u64,
}

impl StockLevel {
    /// The orders that are looked at, the newest.
    const ORDERS: u64 = 20;

    fn next(&mut self, values: &mut Vec<Filled>) -> Option<usize> {
        let key = [UInt(self.warehouse), UInt(self.district)];
        let at = self.sent;
        self.sent += 1;
        self.asked = match at {
            0 => number::BEGIN,
            1 => {
                values.extend(key);
                number::NEXT_ORDER
            }
            2 => {
                values.extend(key);
                let first = self.next_order.saturating_sub(Self::ORDERS);
                values.extend([UInt(self.next_order), UInt(first), UInt(self.threshold)]);
                number::LOW_STOCK
            }
            3 => number::COMMIT,
            _ => return None,
        };
        Some(self.asked)
    }

    fn row(&mut self, row: &Row<'_>) -> Result<(), Error> {
        if self.asked == number::NEXT_ORDER {
            self.next_order = row.get(0)?;
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn terminal(think_time: f64) -> Terminal {
        let plan = TpccPlan {
            warehouses: 3,
            think_time,
            ..TpccPlan::default()
        };
        Terminal::new(&plan, &Constants::draw(1), 7)
    }

    /// Does a transaction to its end, without a server's replies.
    fn finish(terminal: &mut Terminal, random: &mut Rng) -> Vec<usize> {
        let mut sent = Vec::new();
        let mut values = Vec::new();
        while let Some(number) = terminal.next(random, &mut values) {
            assert_eq!(values.len(), STATEMENTS[number].matches('?').count());
            values.clear();
            sent.push(number);
        }
        sent
    }

    #[test]
    fn a_deck_is_the_mix() {
        let random = &mut Rng::with_seed(1);
        let mut terminal = terminal(0.0);
        let mut counts = [0; 5];
        for _ in 0..23 * 10 {
            assert_eq!(terminal.begin(random), Duration::ZERO);
            counts[terminal.kind()] += 1;
            let sent = finish(&mut terminal, random);
            assert_eq!(sent[0], number::BEGIN);
            let last = sent.last().copied();
            assert!(last == Some(number::COMMIT) || last == Some(number::ROLLBACK));
        }
        assert_eq!(counts, [100, 100, 10, 10, 10]);
    }

    #[test]
    fn a_terminal_has_a_home_and_thinks_as_long_as_its_kind_says() {
        let random = &mut Rng::with_seed(1);
        let mut terminal = terminal(1.0);
        assert_eq!((terminal.warehouse, terminal.district), (2, 3));
        let mut sum = Duration::ZERO;
        let transactions = 23 * 100;
        for _ in 0..transactions {
            sum += terminal.begin(random);
            finish(&mut terminal, random);
        }
        // (10 (18 + 12) + 10 (3 + 12) + (2 + 10) + (2 + 5) + (2 + 5)) / 23
        let mean = sum.as_secs_f64() / f64::from(transactions);
        assert!((20.0..21.5).contains(&mean), "{mean}");
    }

    #[test]
    fn a_transaction_that_was_rolled_back_is_done_again_as_it_was() {
        let random = &mut Rng::with_seed(1);
        let mut terminal = terminal(1.0);
        terminal.begin(random);
        let mut first = Vec::new();
        terminal.next(random, &mut Vec::new());
        terminal.next(random, &mut first);
        let kind = terminal.kind();
        assert_eq!(terminal.begin(random), Duration::ZERO);
        let mut again = Vec::new();
        terminal.next(random, &mut Vec::new());
        terminal.next(random, &mut again);
        assert_eq!((terminal.kind(), again), (kind, first));
    }
}
