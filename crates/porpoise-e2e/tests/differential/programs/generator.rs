//! Random programs, made of one seed. Every loop ends: each counts its rounds in a variable of its
//! own.

use std::fmt::Write;

const DEPTH_MAX: usize = 3;
const ROUNDS_MAX: usize = 4;
const MODES: &[&str] = &[
    "STRICT_TRANS_TABLES,ERROR_FOR_DIVISION_BY_ZERO",
    "",
    "STRICT_ALL_TABLES",
    "PIPES_AS_CONCAT,STRICT_TRANS_TABLES",
];

/// What surrounds a statement.
#[derive(Clone, Default)]
struct Place {
    depth: usize,
    /// Labels of loops around it, which it may leave and begin again.
    loops: Vec<String>,
    /// Labels of blocks around it.
    blocks: Vec<String>,
    /// It is in a handler's body.
    handles: bool,
    /// It runs within a statement.
    is_within_statement: bool,
    /// Its handler may have a NOT FOUND or a warning, which RESIGNAL raises as an error in MySQL, and
    /// not in MariaDB.
    handles_warnings: bool,
    /// `NEW` may be changed.
    is_before: bool,
}

/// A source of programs.
pub struct ProgramGenerator {
    random: fastrand::Rng,
    /// Makes labels and variables differ.
    serial: usize,
    /// Whether the peer is MySQL, which alone has GET STACKED and GET CURRENT DIAGNOSTICS.
    is_mysql: bool,
}

impl ProgramGenerator {
    /// A source of a seed's programs.
    pub fn new(seed: u64, is_mysql: bool) -> ProgramGenerator {
        ProgramGenerator {
            random: fastrand::Rng::with_seed(seed ^ 0x70_72_6f_67),
            serial: 0,
            is_mysql,
        }
    }

    fn chance(&mut self, percent: u32) -> bool {
        self.random.u32(0..100) < percent
    }

    fn pick<'a>(&mut self, of: &[&'a str]) -> &'a str {
        of[self.random.usize(0..of.len())]
    }

    fn next(&mut self) -> usize {
        self.serial += 1;
        self.serial
    }

    pub fn mode(&mut self) -> &'static str {
        self.pick(MODES)
    }

    /// The tables, with rows, and the programs.
    pub fn definitions(&mut self) -> Vec<String> {
        let mut all: Vec<String> = [
            "CREATE TABLE trace (id INT PRIMARY KEY AUTO_INCREMENT, spot INT, n INT, m INT, s VARCHAR(40), more VARCHAR(60))",
            "CREATE TABLE t (k INT PRIMARY KEY, v INT, s VARCHAR(8), d DECIMAL(5,2) NOT NULL DEFAULT 1, UNIQUE KEY (s))",
            "CREATE TABLE u (k INT PRIMARY KEY AUTO_INCREMENT, v TINYINT NOT NULL, s VARCHAR(20))",
            "INSERT INTO t VALUES (1, 10, 'one', 1.5), (2, NULL, 'two', 2), (3, 30, NULL, 3), (5, -5, 'five', 0), (8, 8, '', 8.88)",
            "INSERT INTO u VALUES (1, 1, 'a'), (2, 100, NULL), (3, -3, 'c')",
        ]
        .map(String::from)
        .into();
        all.push(self.function());
        all.push(self.procedure("inner_one", false));
        let triggers = self.random.usize(0..3);
        for number in 0..triggers {
            all.push(self.trigger(number));
        }
        all.push(self.procedure("outer_one", true));
        all
    }

    /// Statements that call a procedure.
    pub fn call(&mut self) -> Vec<String> {
        let name = self.pick(&["inner_one", "outer_one", "outer_one"]);
        let (a, b) = (self.number(), self.number());
        vec![
            format!("SET @b = {b}, @c = 'before'"),
            format!("CALL {name}({a}, @b, @c)"),
        ]
    }

    fn number(&mut self) -> String {
        match self.random.u32(0..8) {
            0 => "NULL".to_string(),
            1 => "0".to_string(),
            2 => "100".to_string(),
            3 => "-1".to_string(),
            _ => self.random.i32(-3..12).to_string(),
        }
    }

    /// An expression of numbers over the variables.
    fn expression(&mut self, place: &Place) -> String {
        let simple = |own: &mut Self| match own.random.u32(0..5) {
            0 => own.number(),
            _ => own.pick(&["n", "m", "n", "m", "a"]).to_string(),
        };
        let (left, right) = (simple(self), simple(self));
        match self.random.u32(0..14) {
            0..=3 => left,
            4 => format!("{left} + {right}"),
            5 => format!("{left} - {right}"),
            6 => format!("{left} * {right}"),
            7 => format!("{left} % {right}"),
            8 => format!("COALESCE({left}, {right})"),
            9 => format!("IF({left} > {right}, {left}, {right})"),
            10 => format!("(SELECT MAX(v) FROM t WHERE k <= {left})"),
            11 => format!("(SELECT COUNT(*) FROM u WHERE v > {left})"),
            12 if !place.is_within_statement => format!("some_function({left}, {right})"),
            _ => format!("CHAR_LENGTH(s) + {left}"),
        }
    }

    fn text(&mut self) -> String {
        match self.random.u32(0..6) {
            0 => "NULL".to_string(),
            1 => "CONCAT(s, n)".to_string(),
            2 => "CONCAT_WS('-', s, m)".to_string(),
            3 => "LEFT(s, 3)".to_string(),
            4 => "'some words'".to_string(),
            _ => format!("'{}'", self.pick(&["one", "two", "x", "", "longer text"])),
        }
    }

    /// An expression for a statement that may evaluate it once or for each row: it calls no function.
    fn of_rows(&mut self, place: &Place) -> String {
        self.expression(&Place {
            is_within_statement: true,
            ..place.clone()
        })
    }

    fn condition(&mut self, place: &Place) -> String {
        let (left, right) = (self.of_rows(place), self.of_rows(place));
        match self.random.u32(0..7) {
            0 => format!("{left} IS NULL"),
            1 => format!("{left} = {right}"),
            2 => "s LIKE '%o%'".to_string(),
            3 => format!("EXISTS (SELECT 1 FROM t WHERE v = {left})"),
            4 => format!("{left} < {right} OR n > 3"),
            _ => format!("{left} < {right}"),
        }
    }

    fn function(&mut self) -> String {
        let place = Place {
            is_within_statement: true,
            ..Place::default()
        };
        let body = self.block(&place, 3);
        let returned = self.expression(&place);
        format!(
            "CREATE FUNCTION some_function(a INT, b INT) RETURNS INT DETERMINISTIC BEGIN\n\
             DECLARE n INT DEFAULT a; DECLARE m INT DEFAULT b; DECLARE s VARCHAR(12) DEFAULT 'f'; DECLARE c VARCHAR(20);\n\
             {body}RETURN {returned};\nEND"
        )
    }

    fn procedure(&mut self, name: &str, calls: bool) -> String {
        let place = Place::default();
        let mut body = self.block(&place, 4);
        if calls {
            let argument = self.expression(&place);
            let _ = writeln!(body, "CALL inner_one({argument}, m, s);");
            body.push_str(&self.block(&place, 2));
        }
        format!(
            "CREATE PROCEDURE {name}(a INT, INOUT b INT, OUT c VARCHAR(20)) BEGIN\n\
             DECLARE n INT DEFAULT a; DECLARE m INT DEFAULT b; DECLARE s VARCHAR(12) DEFAULT 'p';\n\
             {body}SET b = n; SET c = s;\nEND"
        )
    }

    fn trigger(&mut self, number: usize) -> String {
        let time = self.pick(&["BEFORE", "AFTER"]);
        let event = self.pick(&["INSERT", "UPDATE", "DELETE"]);
        let row = if event == "DELETE" { "OLD" } else { "NEW" };
        let place = Place {
            is_within_statement: true,
            is_before: time == "BEFORE" && event != "DELETE",
            ..Place::default()
        };
        let body = self.block(&place, 2);
        format!(
            "CREATE TRIGGER trigger_{number} {time} {event} ON u FOR EACH ROW BEGIN\n\
             DECLARE n INT DEFAULT {row}.v; DECLARE m INT DEFAULT {row}.k; DECLARE s VARCHAR(12) DEFAULT LEFT({row}.s, 12);\n\
             DECLARE a INT DEFAULT 1; DECLARE b INT; DECLARE c VARCHAR(20);\n\
             {body}END"
        )
    }

    fn trace(&mut self, out: &mut String) {
        let spot = self.next();
        let _ = writeln!(
            out,
            "INSERT INTO trace (spot, n, m, s) VALUES ({spot}, n, m, s);"
        );
    }

    /// Statements, one after the other.
    fn statements(&mut self, place: &Place, most: usize) -> String {
        let mut out = String::new();
        for _ in 0..self.random.usize(1..=most) {
            out.push_str(&self.statement(place));
        }
        out
    }

    /// A block with handlers and maybe a cursor.
    fn block(&mut self, place: &Place, most: usize) -> String {
        let label = format!("b{}", self.next());
        let mut inner = place.clone();
        inner.depth += 1;
        inner.blocks.push(label.clone());
        let mut out = format!("{label}: BEGIN\n");
        if self.chance(30) {
            let value = self.expression(place);
            let _ = writeln!(out, "DECLARE n INT DEFAULT {value};");
        }
        let named = self.chance(25);
        if named {
            out.push_str("DECLARE named CONDITION FOR SQLSTATE '45001';\n");
        }
        let mut conditions = vec![
            "SQLEXCEPTION",
            "SQLWARNING",
            "NOT FOUND",
            "1062",
            "SQLSTATE '23000'",
            "SQLSTATE '45000'",
            "1329",
            "1264",
        ];
        if named {
            conditions.push("named");
        }
        for _ in 0..self.random.usize(0..3) {
            let at = self.random.usize(0..conditions.len());
            let condition = conditions.swap_remove(at);
            let kind = self.pick(&["CONTINUE", "EXIT"]);
            let mut handles = inner.clone();
            handles.handles = true;
            handles.handles_warnings = matches!(condition, "SQLWARNING" | "NOT FOUND" | "1329");
            handles.loops.clear();
            handles.blocks.clear();
            handles.depth = DEPTH_MAX;
            let body = self.handler_body(&handles);
            let _ = writeln!(
                out,
                "DECLARE {kind} HANDLER FOR {condition} BEGIN\n{body}END;"
            );
        }
        out.push_str(&self.statements(&inner, most));
        if named && self.chance(40) {
            out.push_str("SIGNAL named SET MESSAGE_TEXT = 'by name';\n");
        }
        self.trace(&mut out);
        let _ = writeln!(out, "END {label};");
        out
    }

    fn handler_body(&mut self, place: &Place) -> String {
        let mut out = String::new();
        if self.chance(50) {
            let area = match self.is_mysql {
                true => self.pick(&["", "STACKED ", "CURRENT "]),
                false => "",
            };
            let spot = self.next();
            let _ = writeln!(
                out,
                "GET {area}DIAGNOSTICS CONDITION 1 @state = RETURNED_SQLSTATE, @number = MYSQL_ERRNO;\n\
                 INSERT INTO trace (spot, n, more) VALUES ({spot}, n, CONCAT_WS(' ', @state, @number));"
            );
        }
        let resignals = self.chance(20) && (self.is_mysql || !place.handles_warnings);
        // RESIGNAL adds to the conditions that the handler was given. MariaDB keeps no stack of them,
        // and adds to what the handler's own statements have left.
        if self.is_mysql || !resignals {
            out.push_str(&self.statements(place, 2));
        }
        if resignals {
            out.push_str(self.pick(&[
                "RESIGNAL;\n",
                "RESIGNAL SET MESSAGE_TEXT = 'again';\n",
                "RESIGNAL SQLSTATE '45002';\n",
            ]));
        }
        out
    }

    fn statement(&mut self, place: &Place) -> String {
        let is_deep = place.depth >= DEPTH_MAX;
        let mut inner = place.clone();
        inner.depth += 1;
        match self.random.u32(0..if is_deep { 14 } else { 22 }) {
            0..=2 => {
                let (to, value) = (self.pick(&["n", "m"]), self.expression(place));
                format!("SET {to} = {value};\n")
            }
            3 => format!("SET s = {};\n", self.text()),
            4 => {
                let mut out = String::new();
                self.trace(&mut out);
                out
            }
            5 => self.change_of_t(place),
            6 => self.change_of_u(place),
            7 => {
                let (column, compared) = (self.pick(&["v", "k", "d"]), self.of_rows(place));
                format!("SELECT {column}, s INTO m, s FROM t WHERE k = {compared};\n")
            }
            8 => {
                let limit = self.pick(&["", " LIMIT 1"]);
                format!("SELECT k INTO n FROM t WHERE v > m ORDER BY k{limit};\n")
            }
            9 if self.chance(40) => {
                let state = self.pick(&["45000", "01234", "02345", "23000", "45001"]);
                format!("SIGNAL SQLSTATE '{state}' SET MYSQL_ERRNO = 4321;\n")
            }
            10 if !place.loops.is_empty() => {
                let verb = self.pick(&["LEAVE", "LEAVE", "ITERATE"]);
                let label = place.loops[self.random.usize(0..place.loops.len())].clone();
                let condition = self.condition(place);
                format!("IF {condition} THEN {verb} {label}; END IF;\n")
            }
            11 if !place.blocks.is_empty() => {
                let label = place.blocks[self.random.usize(0..place.blocks.len())].clone();
                let condition = self.condition(place);
                format!("IF {condition} THEN LEAVE {label}; END IF;\n")
            }
            12 => {
                // What other statements leave of it isn't the same in both. Within a
                // statement MariaDB doesn't count the row of INSERT … VALUES.
                let (change, spot) = (self.change_of_t(place), self.next());
                if place.is_within_statement && !self.is_mysql && change.starts_with("INSERT") {
                    return change;
                }
                format!(
                    "{change}GET DIAGNOSTICS @rows = ROW_COUNT;\nINSERT INTO trace (spot, m) VALUES ({spot}, @rows);\n"
                )
            }
            13 if place.is_before => {
                let (column, value) = (self.pick(&["v", "v", "s"]), self.expression(place));
                format!("SET NEW.{column} = {value};\n")
            }
            14..=15 => {
                let condition = self.condition(place);
                let then = self.statements(&inner, 2);
                let otherwise = self.statements(&inner, 2);
                format!("IF {condition} THEN\n{then}ELSE\n{otherwise}END IF;\n")
            }
            16 => {
                let operand = self.expression(place);
                let (one, two) = (self.number(), self.number());
                let (first, second) = (self.statements(&inner, 2), self.statements(&inner, 1));
                let end = match self.chance(70) {
                    true => format!("ELSE\n{}", self.statements(&inner, 1)),
                    false => String::new(),
                };
                format!(
                    "CASE {operand}\nWHEN {one} THEN\n{first}WHEN {two} THEN\n{second}{end}END CASE;\n"
                )
            }
            17..=18 => self.a_loop(&mut inner),
            19 => self.cursor_loop(&mut inner),
            20 => self.block(&inner, 3),
            _ => {
                let (to, value) = (self.pick(&["n", "m"]), self.expression(place));
                format!("SET {to} = {value};\n")
            }
        }
    }

    fn change_of_t(&mut self, place: &Place) -> String {
        // MySQL lets a statement read the table that it changes only through a derived table.
        let derived = |read: String| read.replace("FROM t ", "FROM (SELECT * FROM t) x ");
        let (key, value) = (self.of_rows(place), self.of_rows(place));
        // A division by zero in WHERE is an error of the change where its rows are looked at, and none
        // where the optimizer has looked at it before.
        let key = derived(key).replace('%', "+");
        // Where a value reads the table, MariaDB computes all values before it looks whether one may be
        // NULL.
        let value = match self.is_mysql || !key.contains("SELECT") {
            true => derived(value),
            false => derived(value).replace('%', "+"),
        };
        let text = self.text();
        match self.random.u32(0..4) {
            0 => format!("INSERT INTO t (k, v, s) VALUES ({key}, {value}, {text});\n"),
            1 => format!("UPDATE t SET v = {value} WHERE k > {key};\n"),
            2 => format!("UPDATE t SET s = {text}, d = {value} WHERE k = 3;\n"),
            _ => format!("DELETE FROM t WHERE k = {key};\n"),
        }
    }

    fn change_of_u(&mut self, place: &Place) -> String {
        // A program that a statement on u runs may not change u, and may not be run by one.
        if place.is_within_statement {
            return self.change_of_t(place);
        }
        let (value, text) = (self.pick(&["n", "m", "n * 3", "130", "7"]), self.text());
        match self.random.u32(0..5) {
            0..=1 => format!("INSERT INTO u (v, s) VALUES ({value}, {text});\n"),
            2 => format!("UPDATE u SET v = {value} WHERE k < m;\n"),
            3 => format!(
                "INSERT INTO u VALUES (2, {value}, {text}) ON DUPLICATE KEY UPDATE s = {text};\n"
            ),
            _ => "DELETE FROM u WHERE k > n LIMIT 1;\n".to_string(),
        }
    }

    fn a_loop(&mut self, inner: &mut Place) -> String {
        let number = self.next();
        let (label, counter) = (format!("l{number}"), format!("r{number}"));
        let rounds = self.random.usize(1..=ROUNDS_MAX);
        inner.loops.push(label.clone());
        let body = self.statements(inner, 3);
        let count = format!("SET {counter} = {counter} + 1;\n");
        let end = format!("IF {counter} > {rounds} THEN LEAVE {label}; END IF;\n");
        let looped = match self.random.u32(0..3) {
            0 => format!("{label}: LOOP\n{count}{end}{body}END LOOP {label};\n"),
            1 => {
                format!(
                    "{label}: WHILE {counter} <= {rounds} DO\n{count}{body}END WHILE {label};\n"
                )
            }
            // ITERATE doesn't look at UNTIL.
            _ => format!(
                "{label}: REPEAT\n{count}{end}{body}UNTIL {counter} >= {rounds} END REPEAT {label};\n"
            ),
        };
        format!("BEGIN\nDECLARE {counter} INT DEFAULT 0;\n{looped}END;\n")
    }

    fn cursor_loop(&mut self, inner: &mut Place) -> String {
        let number = self.next();
        let (label, cursor, done) = (
            format!("l{number}"),
            format!("c{number}"),
            format!("done{number}"),
        );
        let counter = format!("r{number}");
        let query = self.pick(&[
            "SELECT k, s FROM t ORDER BY k",
            "SELECT k, s FROM t WHERE k > n ORDER BY k DESC",
            "SELECT v, s FROM u ORDER BY k",
            "SELECT k, s FROM t WHERE v IN (SELECT v FROM u) ORDER BY k",
        ]);
        inner.loops.push(label.clone());
        let body = self.statements(inner, 2);
        format!(
            "BEGIN\nDECLARE {done}, {counter} INT DEFAULT 0;\nDECLARE {cursor} CURSOR FOR {query};\n\
             DECLARE CONTINUE HANDLER FOR NOT FOUND SET {done} = 1;\nOPEN {cursor};\n\
             {label}: LOOP\nSET {counter} = {counter} + 1;\nFETCH {cursor} INTO m, s;\n\
             IF {done} OR {counter} > 9 THEN LEAVE {label}; END IF;\n{body}END LOOP {label};\n\
             CLOSE {cursor};\nEND;\n"
        )
    }
}
