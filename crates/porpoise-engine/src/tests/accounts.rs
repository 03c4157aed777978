//! Who may do what, from GRANT to refusal.

use std::sync::Arc;

use porpoise_accounts::{Account, Accounts};
use porpoise_infoschema::account_text;

use super::database::Db;

/// A database where `u` from anywhere exists, and a session of `u` beside root's.
fn with_user() -> (Db, Db) {
    let mut root = Db::new();
    root.run("CREATE USER u IDENTIFIED BY 'secret'");
    root.run("CREATE TABLE t (a INT, b INT)");
    let user = login(&root, "u");
    (root, user)
}

pub(super) fn login(db: &Db, user: &str) -> Db {
    let account = db
        .engine
        .account_for(user, "192.0.2.1", "192.0.2.1".parse().ok())
        .expect("an account");
    let login = crate::session::Login {
        account: Some(account),
        user: user.into(),
        host: "192.0.2.1".into(),
        ..Default::default()
    };
    Db {
        engine: db.engine.clone(),
        session: db.engine.connect(login).expect("connects"),
    }
}

fn grants_of(db: &Db, user: &str, host: &str) -> Vec<String> {
    let account = db
        .engine
        .shared
        .accounts
        .get(user, host)
        .expect("an account");
    account_text::grants(&account, &account.grants.load())
}

#[test]
fn a_fresh_database_belongs_to_root_at_localhost() {
    let db = Db::new();
    let root = db
        .engine
        .account_for("root", "localhost", None)
        .expect("root");
    assert_eq!(
        (root.plugin.as_str(), root.authentication_string.as_str()),
        ("auth_socket", "")
    );
    assert!(db.engine.account_for("root", "192.0.2.1", None).is_none());
    assert!(
        grants_of(&db, "root", "localhost")[0]
            .starts_with("GRANT SELECT, INSERT, UPDATE, DELETE, CREATE, DROP, RELOAD")
    );
    assert!(
        grants_of(&db, "root", "localhost")[0]
            .ends_with("CREATE ROLE, DROP ROLE ON *.* TO `root`@`localhost` WITH GRANT OPTION")
    );
}

#[test]
fn grants_print_as_they_were_given() {
    let (mut root, _) = with_user();
    assert_eq!(
        grants_of(&root, "u", "%"),
        ["GRANT USAGE ON *.* TO `u`@`%`"]
    );
    root.run("GRANT SELECT, INSERT (a), UPDATE (a, b) ON d.t TO u");
    root.run("GRANT ALL ON d.* TO u WITH GRANT OPTION");
    root.run("GRANT PROCESS, CONNECTION_ADMIN ON *.* TO u");
    assert_eq!(
        grants_of(&root, "u", "%"),
        [
            "GRANT PROCESS ON *.* TO `u`@`%`",
            "GRANT CONNECTION_ADMIN ON *.* TO `u`@`%`",
            "GRANT ALL PRIVILEGES ON `d`.* TO `u`@`%` WITH GRANT OPTION",
            "GRANT SELECT, INSERT (`a`), UPDATE (`a`, `b`) ON `d`.`t` TO `u`@`%`",
        ]
    );
    root.run("REVOKE ALL ON d.* FROM u");
    root.run("REVOKE UPDATE (a) ON d.t FROM u");
    assert_eq!(
        grants_of(&root, "u", "%")[2..],
        [
            "GRANT USAGE ON `d`.* TO `u`@`%` WITH GRANT OPTION",
            "GRANT SELECT, INSERT (`a`), UPDATE (`b`) ON `d`.`t` TO `u`@`%`"
        ]
    );
    root.run("REVOKE ALL PRIVILEGES, GRANT OPTION FROM u");
    assert_eq!(
        grants_of(&root, "u", "%"),
        ["GRANT USAGE ON *.* TO `u`@`%`"]
    );
    root.fails("REVOKE SELECT ON d.* FROM u", 1141);
    root.fails("REVOKE SELECT ON d.t FROM u", 1147);
    root.fails("GRANT SELECT ON d.t TO nobody", 1410);
    root.fails("GRANT SELECT ON d.nothing TO u", 1146);
    root.fails("GRANT SELECT (z) ON d.t TO u", 1054);
    root.fails("GRANT PROCESS ON d.* TO u", 1221);
    root.fails("GRANT PROCESS ON d.t TO u", 1144);
}

#[test]
fn what_was_not_granted_is_refused_and_a_grant_reaches_open_sessions() {
    let (mut root, mut user) = with_user();
    user.fails("USE d", 1044);
    user.fails("CREATE TABLE d.x (a INT)", 1142);
    user.fails("CREATE DATABASE e", 1044);
    user.fails("CREATE USER v", 1227);
    user.fails("GRANT SELECT ON d.t TO u", 1142);
    root.run("GRANT CREATE, DROP ON `d%`.* TO u");
    user.run("USE d");
    user.run("CREATE TABLE d.x (a INT)");
    user.fails("ALTER TABLE x ADD b INT", 1142);
    user.run("DROP TABLE x");
    root.run("REVOKE DROP ON `d%`.* FROM u");
    user.fails("DROP TABLE t", 1142);
}

#[test]
fn the_account_of_the_most_specific_host_is_matched_before_that_of_the_name() {
    let mut root = Db::new();
    for sql in [
        "CREATE USER u",
        "CREATE USER u@'192.0.2.%'",
        "CREATE USER ''@'192.0.2.7'",
        "CREATE USER v@'198.51.100.0/24'",
    ] {
        root.run(sql);
    }
    let matched = |user: &str, ip: &str| {
        let account = root.engine.account_for(user, ip, ip.parse().ok());
        account.map(|account| account.quoted())
    };
    for (user, ip, account) in [
        ("u", "203.0.113.1", Some("'u'@'%'")),
        ("u", "192.0.2.1", Some("'u'@'192.0.2.%'")),
        ("u", "192.0.2.7", Some("''@'192.0.2.7'")),
        ("nobody", "192.0.2.7", Some("''@'192.0.2.7'")),
        ("nobody", "192.0.2.1", None),
        ("v", "198.51.100.9", Some("'v'@'198.51.100.0/24'")),
        ("v", "192.0.2.1", None),
    ] {
        assert_eq!(matched(user, ip).as_deref(), account, "{user} {ip}");
    }
}

#[test]
fn hosts_are_heard_as_long_as_an_account_is_for_them() {
    let mut root = Db::new();
    let hears = |db: &Db, ip: &str| db.engine.hears_host(ip, ip.parse().ok());
    assert!(root.engine.hears_host("localhost", None));
    assert!(!hears(&root, "192.0.2.1"));
    root.run("CREATE USER u@'192.0.2.%', v@'192.0.2.%'");
    root.run("DROP USER u@'192.0.2.%'");
    assert!(hears(&root, "192.0.2.1") && !hears(&root, "198.51.100.9"));
    root.run("CREATE USER w");
    assert!(hears(&root, "198.51.100.9"));
    root.run("DROP USER w, v@'192.0.2.%'");
    assert!(!hears(&root, "192.0.2.1"));
}

#[test]
fn users_change_their_own_password_and_nobody_elses() {
    let (mut root, mut user) = with_user();
    let before = root
        .engine
        .shared
        .accounts
        .get("u", "%")
        .expect("u")
        .authentication_string
        .clone();
    assert!(before.starts_with("$A$005$"));
    user.run("SET PASSWORD = 'other'");
    assert_ne!(
        root.engine
            .shared
            .accounts
            .get("u", "%")
            .expect("u")
            .authentication_string,
        before
    );
    root.run("CREATE USER v IDENTIFIED WITH mysql_native_password BY 'password'");
    user.fails("SET PASSWORD FOR v = 'x'", 1227);
    user.fails("ALTER USER v IDENTIFIED BY 'x'", 1227);
    let v = root.engine.shared.accounts.get("v", "%").expect("v");
    assert_eq!(
        v.authentication_string,
        "*2470C0C06DEE42FD1618BB99005ADCA2EC9D1E19"
    );
    assert!(account_text::create_user(&v).starts_with(
        "CREATE USER `v`@`%` IDENTIFIED WITH 'mysql_native_password' AS '*2470C0C06DEE42FD1618BB99005ADCA2EC9D1E19' REQUIRE NONE"
    ));
    root.fails("CREATE USER u", 1396);
    root.run("CREATE USER IF NOT EXISTS u");
    root.fails("DROP USER nobody", 1396);
    root.run("RENAME USER v TO w@localhost");
    assert!(root.engine.shared.accounts.get("w", "localhost").is_some());
}

#[test]
fn accounts_and_grants_outlive_the_engine() {
    let (mut root, _) = with_user();
    root.run("GRANT SELECT ON d.t TO u");
    root.run("CREATE USER ''@'192.0.2.%'");
    let again = Accounts::open(&root.engine.shared.store).expect("opens again");
    let account = again.get("u", "%").expect("u");
    assert_eq!(
        account_text::grants(&account, &account.grants.load()).len(),
        2
    );
    // The more specific host wins, even with the anonymous user.
    let found = again
        .find("u", "192.0.2.5", "192.0.2.5".parse().ok())
        .expect("somebody");
    assert_eq!(found.quoted(), "''@'192.0.2.%'");
    assert_eq!(
        again
            .find("u", "198.51.100.5", None)
            .map(|account| account.quoted()),
        Some("'u'@'%'".into())
    );
    assert!(Arc::ptr_eq(
        &again.all()[0],
        &again.get("", "192.0.2.%").expect("anonymous")
    ));
}

#[test]
fn a_role_counts_while_it_is_active_and_granted() {
    let (mut root, mut user) = with_user();
    root.run("CREATE ROLE reader, writer@localhost");
    root.fails("CREATE ROLE reader", 1396);
    root.run("CREATE ROLE IF NOT EXISTS reader");
    root.run("GRANT SELECT ON d.* TO reader");
    root.run("GRANT INSERT ON d.t TO writer@localhost");
    root.run("GRANT writer@localhost TO reader");
    root.fails("GRANT reader TO writer@localhost", 3538);
    root.fails("GRANT nobody TO u", 3523);
    user.fails("SET ROLE reader", 3530);
    root.run("GRANT reader TO u");
    assert_eq!(
        grants_of(&root, "u", "%"),
        [
            "GRANT USAGE ON *.* TO `u`@`%`",
            "GRANT `reader`@`%` TO `u`@`%`"
        ]
    );

    user.fails("SELECT a FROM d.t", 1142);
    assert_eq!(user.rows("SELECT CURRENT_ROLE()"), ["NONE"]);
    user.run("SET ROLE reader");
    assert_eq!(user.rows("SELECT CURRENT_ROLE()"), ["`reader`@`%`"]);
    user.run("SELECT a FROM d.t");
    user.run("INSERT INTO d.t VALUES (1, 1)");
    user.fails("DELETE FROM d.t", 1142);
    user.run("SET ROLE NONE");
    user.fails("SELECT a FROM d.t", 1142);
    user.fails("GRANT reader TO u", 1227);

    root.run("SET DEFAULT ROLE reader TO u");
    assert_eq!(login(&root, "u").rows("SELECT a FROM d.t"), ["1"]);
    root.run("SET DEFAULT ROLE NONE TO u");
    login(&root, "u").fails("SELECT a FROM d.t", 1142);
    root.run("SET GLOBAL activate_all_roles_on_login = 1");
    let mut all = login(&root, "u");
    all.run("SELECT a FROM d.t");

    // What is taken away is gone at once.
    root.run("REVOKE reader FROM u");
    all.fails("SELECT a FROM d.t", 1142);
    root.fails("REVOKE reader FROM u", 3530);
    root.run("GRANT reader TO u");
    root.run("DROP ROLE reader, writer@localhost");
    assert_eq!(
        grants_of(&root, "u", "%"),
        ["GRANT USAGE ON *.* TO `u`@`%`"]
    );
    root.fails("DROP ROLE reader", 1396);
    root.run("CREATE USER v DEFAULT ROLE u");
    assert_eq!(grants_of(&root, "v", "%")[1], "GRANT `u`@`%` TO `v`@`%`");

    let again = Accounts::open(&root.engine.shared.store).expect("opens again");
    let kept = again.get("v", "%").expect("v").grants.load_full();
    assert!(kept.roles[0].default && kept.roles[0].is("u", "%"));
}

#[test]
fn a_connection_that_changes_its_user_takes_no_rights_along() {
    let (root, _) = with_user();
    let mut beside = super::database::beside(&root);
    beside.run("INSERT INTO t VALUES (1, 2)");
    beside.run("CREATE TEMPORARY TABLE mine (a INT)");
    let prepared = beside
        .session
        .prepare(b"SELECT b FROM d.t")
        .expect("prepared");
    assert_eq!(beside.rows("SELECT b FROM d.t"), ["2"]);
    let account = root.engine.account_for("u", "192.0.2.1", None);
    beside
        .session
        .change_user(crate::session::Login {
            account,
            user: "u".into(),
            host: "192.0.2.1".into(),
            ..Default::default()
        })
        .expect("changes");
    beside.fails("SELECT b FROM d.t", 1142);
    beside.fails("SELECT a FROM d.mine", 1142);
    assert_eq!(beside.execute(prepared.id).unwrap_err().number(), 1243);
}

#[test]
fn com_field_list_tells_the_columns_that_one_may_know() {
    let (mut root, mut user) = with_user();
    root.run("GRANT CREATE ON d.* TO u");
    root.run("CREATE TABLE secret (a INT, b INT)");
    user.run("USE d");
    root.run("REVOKE CREATE ON d.* FROM u");
    let refused = user.session.field_list("secret", "").unwrap_err();
    assert_eq!(refused.number(), 1142);
    root.run("GRANT UPDATE (b) ON d.secret TO u");
    let columns = user.session.field_list("secret", "").expect("columns");
    let names: Vec<&str> = columns.iter().map(|column| &*column.name).collect();
    assert_eq!(names, ["b"]);
}

#[test]
fn who_must_change_the_password_can_do_nothing_else_before() {
    let (mut root, _) = with_user();
    root.run("GRANT ALL ON *.* TO u");
    root.run("ALTER USER u PASSWORD EXPIRE");
    let mut user = login(&root, "u");
    for sql in [
        "SELECT 1",
        "SELECT * FROM d.t",
        "SET @x = 1",
        "BEGIN",
        "DROP TABLE d.t",
        "SHOW TABLES FROM d",
        "PREPARE s FROM 'SELECT 1'",
        "ALTER USER u PASSWORD EXPIRE",
    ] {
        if !sql.starts_with("ALTER") {
            user.fails(sql, 1820);
        } else {
            user.run(sql);
            user.fails("SELECT 1", 1820);
        }
    }
    assert_eq!(
        user.session.prepare(b"SELECT 1").unwrap_err().number(),
        1820
    );
    user.run("ALTER USER u IDENTIFIED BY 'new'");
    user.run("SELECT * FROM d.t");
    let mut again = login(&root, "u");
    again.run("SELECT 1");
}

fn shown(db: &mut Db, user: &str) -> String {
    db.rows(&format!("SHOW CREATE USER {user}")).concat()
}

#[test]
fn an_accounts_policy_is_shown_as_it_was_given() {
    let mut root = Db::new();
    let plain = " REQUIRE NONE PASSWORD EXPIRE DEFAULT ACCOUNT UNLOCK PASSWORD HISTORY DEFAULT \
                 PASSWORD REUSE INTERVAL DEFAULT PASSWORD REQUIRE CURRENT DEFAULT";
    root.run("CREATE USER u");
    assert!(shown(&mut root, "u").ends_with(plain));
    let policy = " REQUIRE NONE WITH MAX_QUERIES_PER_HOUR 1 MAX_UPDATES_PER_HOUR 2 \
                  MAX_CONNECTIONS_PER_HOUR 3 MAX_USER_CONNECTIONS 4 PASSWORD EXPIRE INTERVAL 9 DAY \
                  ACCOUNT LOCK PASSWORD HISTORY 5 PASSWORD REUSE INTERVAL 6 DAY \
                  PASSWORD REQUIRE CURRENT FAILED_LOGIN_ATTEMPTS 7 PASSWORD_LOCK_TIME UNBOUNDED";
    root.run(&format!("ALTER USER u{policy}"));
    assert!(shown(&mut root, "u").ends_with(policy));
    let user = "SELECT max_questions, max_updates, max_connections, max_user_connections, \
                password_lifetime, account_locked, password_reuse_history, password_reuse_time, \
                password_require_current, user_attributes FROM mysql.user WHERE user = 'u'";
    let lock =
        r#"{"Password_locking": {"failed_login_attempts": 7, "password_lock_time_days": -1}}"#;
    assert_eq!(root.rows(user), [format!("1|2|3|4|9|Y|5|6|Y|{lock}")]);
    root.run("ALTER USER u PASSWORD EXPIRE NEVER PASSWORD REQUIRE CURRENT OPTIONAL");
    let changed = shown(&mut root, "u");
    assert!(changed.contains(" PASSWORD EXPIRE NEVER ") && changed.contains(" CURRENT OPTIONAL "));
    for (sql, number) in [
        ("ALTER USER u FAILED_LOGIN_ATTEMPTS 32768", 1064),
        ("ALTER USER u PASSWORD EXPIRE INTERVAL 0 DAY", 1064),
        ("ALTER USER u PASSWORD HISTORY 65536", 1064),
        (
            "CREATE USER v IDENTIFIED BY 'x' RETAIN CURRENT PASSWORD",
            1064,
        ),
        ("CREATE USER v IDENTIFIED WITH nothing", 1524),
    ] {
        root.fails(sql, number);
    }
}

#[test]
fn comments_and_attributes_are_merged() {
    let mut root = Db::new();
    root.run("CREATE USER u COMMENT 'it''s'");
    let attribute = "SELECT attribute FROM information_schema.user_attributes WHERE user = 'u'";
    assert_eq!(root.rows(attribute), [r#"{"comment": "it's"}"#]);
    root.run(r#"ALTER USER u ATTRIBUTE '{"b": [1], "a": null}'"#);
    assert_eq!(root.rows(attribute), [r#"{"b": [1], "comment": "it's"}"#]);
    root.run(r#"ALTER USER u ATTRIBUTE '{"comment": null}'"#);
    assert_eq!(root.rows(attribute), [r#"{"b": [1]}"#]);
    root.fails("ALTER USER u ATTRIBUTE '[1]'", 3982);
    root.fails("ALTER USER u ATTRIBUTE 'x'", 3982);
    assert_eq!(root.rows(attribute), [r#"{"b": [1]}"#]);
}

#[test]
fn passwords_of_the_history_are_refused() {
    for plugin in [
        "caching_sha2_password",
        "mysql_native_password",
        "sha256_password",
    ] {
        let mut root = Db::new();
        root.run(&format!(
            "CREATE USER u IDENTIFIED WITH {plugin} BY 'one' PASSWORD HISTORY 2"
        ));
        root.fails("ALTER USER u IDENTIFIED BY 'one'", 3638);
        root.run("ALTER USER u IDENTIFIED BY 'two'");
        root.fails("SET PASSWORD FOR u = 'one'", 3638);
        root.run("ALTER USER u IDENTIFIED BY 'three'");
        let kept = "SELECT COUNT(*) FROM mysql.password_history WHERE user = 'u'";
        assert_eq!(root.rows(kept), ["2"]);
        root.run("ALTER USER u IDENTIFIED BY 'one'");
        // An empty one may come again.
        root.run("ALTER USER u IDENTIFIED BY ''");
        root.run("ALTER USER u IDENTIFIED BY ''");
        root.run("RENAME USER u TO w");
        root.fails("ALTER USER w IDENTIFIED BY 'one'", 3638);
        root.run("DROP USER w");
        assert_eq!(
            root.rows("SELECT COUNT(*) FROM mysql.password_history"),
            ["0"]
        );
    }
    let mut root = Db::with(&[("password_reuse_interval", "3")]);
    root.run("CREATE USER u IDENTIFIED BY 'one'");
    root.run("ALTER USER u IDENTIFIED BY 'two'");
    root.fails("ALTER USER u IDENTIFIED BY 'one'", 3638);
    root.run("ALTER USER u IDENTIFIED BY 'one' PASSWORD REUSE INTERVAL 0 DAY");
}

#[test]
fn the_current_password_is_asked_for_where_it_has_to_be() {
    let (mut root, mut user) = with_user();
    user.run("ALTER USER USER() IDENTIFIED BY 'a'");
    root.run("ALTER USER u PASSWORD REQUIRE CURRENT");
    user.fails("ALTER USER USER() IDENTIFIED BY 'b'", 3892);
    user.fails("SET PASSWORD = 'b'", 3892);
    user.fails("SET PASSWORD = 'b' REPLACE 'x'", 3891);
    user.run("SET PASSWORD = 'b' REPLACE 'a'");
    user.run("ALTER USER CURRENT_USER() IDENTIFIED BY 'c' REPLACE 'b'");
    // Who may change all accounts need not know it.
    root.run("ALTER USER u IDENTIFIED BY 'd'");
    root.fails("ALTER USER u IDENTIFIED BY 'e' REPLACE 'd'", 3893);
    root.run("ALTER USER u PASSWORD REQUIRE CURRENT DEFAULT");
    user.run("SET PASSWORD = 'f'");
    root.run("SET GLOBAL password_require_current = ON");
    user.fails("SET PASSWORD = 'g'", 3892);
    // Nothing but the own password is changed without CREATE USER.
    user.fails("ALTER USER USER() COMMENT 'x'", 1227);
    user.fails("ALTER USER USER() PASSWORD EXPIRE NEVER", 1227);
    user.fails(
        "ALTER USER USER() IDENTIFIED BY 'g' REPLACE 'f' WITH MAX_QUERIES_PER_HOUR 0",
        1227,
    );
}

#[test]
fn a_second_password_is_kept_and_discarded() {
    let (mut root, mut user) = with_user();
    let second = "SELECT user_attributes->>'$.additional_password' IS NOT NULL FROM mysql.user \
                  WHERE user = 'u'";
    root.run("ALTER USER u IDENTIFIED BY 'two' RETAIN CURRENT PASSWORD");
    assert_eq!(root.rows(second), ["1"]);
    root.run("ALTER USER u IDENTIFIED BY 'three'");
    assert_eq!(root.rows(second), ["1"]);
    user.fails("ALTER USER USER() DISCARD OLD PASSWORD", 1227);
    root.run("GRANT APPLICATION_PASSWORD_ADMIN ON *.* TO u");
    user.run("ALTER USER USER() DISCARD OLD PASSWORD");
    assert_eq!(root.rows(second), ["0"]);
    root.fails(
        "ALTER USER u IDENTIFIED BY '' RETAIN CURRENT PASSWORD",
        3895,
    );
    root.fails(
        "ALTER USER u IDENTIFIED WITH mysql_native_password BY 'x' RETAIN CURRENT PASSWORD",
        3894,
    );
    root.run("ALTER USER u IDENTIFIED BY ''");
    root.fails(
        "ALTER USER u IDENTIFIED BY 'x' RETAIN CURRENT PASSWORD",
        3878,
    );
}

#[test]
fn the_server_makes_passwords_and_tells_them_once() {
    let mut root = Db::new();
    let made = root.rows("CREATE USER a IDENTIFIED BY RANDOM PASSWORD, b, c@localhost IDENTIFIED WITH mysql_native_password BY RANDOM PASSWORD");
    let cells: Vec<Vec<&str>> = made.iter().map(|row| row.split('|').collect()).collect();
    let names: Vec<&[&str]> = cells.iter().map(|row| &row[..2]).collect();
    assert_eq!(names, [["a", "%"], ["c", "localhost"]]);
    assert_eq!(
        root.columns("ALTER USER a IDENTIFIED BY RANDOM PASSWORD"),
        "user|host|generated password|auth_factor"
    );
    root.run("SET generated_random_password_length = 100");
    let made = root.rows("SET PASSWORD FOR a TO RANDOM");
    assert_eq!(made[0].len(), "a|%||1".len() + 100);
}

#[test]
fn another_plugin_without_a_password_expires_it() {
    let mut root = Db::new();
    root.run("CREATE USER u IDENTIFIED BY 'x'");
    root.run("ALTER USER u IDENTIFIED WITH mysql_native_password");
    let user = "SELECT plugin, authentication_string, password_expired FROM mysql.user \
                WHERE user = 'u'";
    assert_eq!(root.rows(user), ["mysql_native_password||Y"]);
    root.run("ALTER USER u IDENTIFIED WITH sha256_password BY 'x'");
    assert_eq!(
        root.rows("SELECT plugin, password_expired FROM mysql.user WHERE user = 'u'"),
        ["sha256_password|N"]
    );
    root.fails(
        "ALTER USER u IDENTIFIED WITH sha256_password AS 'no hash'",
        1827,
    );
    for (plugin, warnings) in [
        ("mysql_native_password", 1),
        ("sha256_password", 1),
        ("caching_sha2_password", 0),
    ] {
        let altered = root.run(&format!("ALTER USER u IDENTIFIED WITH {plugin} BY 'x'"));
        assert_eq!(altered.warnings, warnings, "{plugin}");
    }
}

#[test]
fn statements_of_an_hour_are_limited() {
    let mut root = Db::new();
    root.run("CREATE TABLE t (a INT)");
    root.run("CREATE USER u WITH MAX_QUERIES_PER_HOUR 6 MAX_UPDATES_PER_HOUR 2");
    root.run("GRANT ALL ON d.* TO u");
    let mut user = login(&root, "u");
    user.run("INSERT INTO d.t VALUES (1)");
    user.run("CREATE TABLE d.o (a INT)");
    user.fails("UPDATE d.t SET a = 2", 1226);
    user.run("SELECT * FROM d.t");
    user.run("SET @x = 1");
    // The limit is the account's, whichever session it is.
    let mut other = login(&root, "u");
    other.fails("SELECT 1", 1226);
    user.fails("COMMIT", 1226);
    root.run("FLUSH USER_RESOURCES");
    user.run("UPDATE d.t SET a = 2");
    user.run("DELETE FROM d.t");
    user.fails("DELETE FROM d.t", 1226);
    root.run("ALTER USER u WITH MAX_UPDATES_PER_HOUR 2");
    user.run("DELETE FROM d.t");
}

#[test]
fn passwords_have_to_satisfy_the_policy_while_its_component_is_installed() {
    let mut root = Db::new();
    let urn = "'file://component_validate_password'";
    root.fails("SELECT @@validate_password.length", 1193);
    root.fails("SET GLOBAL validate_password.length = 4", 1193);
    root.fails("SELECT VALIDATE_PASSWORD_STRENGTH('x')", 1305);
    root.fails(&format!("UNINSTALL COMPONENT {urn}"), 3537);
    root.fails("INSTALL COMPONENT 'file://component_of_another_kind'", 3529);
    root.fails("INSTALL COMPONENT 'no_scheme'", 3527);
    root.run("CREATE USER u IDENTIFIED BY 'x'");
    root.run(&format!("INSTALL COMPONENT {urn}"));
    root.fails(&format!("INSTALL COMPONENT {urn}"), 3529);
    let installed = "SELECT component_id, component_urn FROM mysql.component";
    assert_eq!(
        root.rows(installed),
        ["1|file://component_validate_password"]
    );
    assert_eq!(
        root.rows("SHOW VARIABLES LIKE 'validate_password%'").len(),
        8
    );
    assert_eq!(root.rows("SELECT @@validate_password.policy"), ["MEDIUM"]);
    for sql in [
        "CREATE USER v",
        "CREATE USER v IDENTIFIED BY ''",
        "CREATE USER v IDENTIFIED WITH mysql_native_password",
        "CREATE USER v IDENTIFIED BY 'abcdefgh'",
        "ALTER USER u IDENTIFIED BY 'abcdefgh'",
        "SET PASSWORD FOR u = 'Abcdefg1'",
    ] {
        root.fails(sql, 1819);
    }
    root.run("CREATE USER v IDENTIFIED BY 'Abcdef-1'");
    root.run("CREATE USER s IDENTIFIED WITH auth_socket");
    root.run("CREATE USER h IDENTIFIED WITH mysql_native_password AS '*94BDCEBE19083CE2A1F959FD02F964C7AF4CFC29'");
    root.run("CREATE USER r IDENTIFIED BY RANDOM PASSWORD");
    root.run("SET GLOBAL validate_password.policy = LOW");
    root.run("SET PASSWORD FOR u = 'abcdefgh'");
    root.run("SET GLOBAL validate_password.length = 10");
    root.fails("SET PASSWORD FOR u = 'abcdefgh'", 1819);
    root.fails(
        "SET GLOBAL validate_password.changed_characters_percentage = 5",
        1235,
    );
    let strength = "SELECT VALIDATE_PASSWORD_STRENGTH('abc'), VALIDATE_PASSWORD_STRENGTH('abcdefgh'), \
                    VALIDATE_PASSWORD_STRENGTH('Abcdef-123'), VALIDATE_PASSWORD_STRENGTH(NULL)";
    assert_eq!(root.rows(strength), ["0|25|100|NULL"]);
    let mut user = login(&root, "u");
    user.fails(&format!("UNINSTALL COMPONENT {urn}"), 1044);
    root.run(&format!("UNINSTALL COMPONENT {urn}"));
    assert_eq!(root.rows(installed), [""; 0]);
    root.run("SET PASSWORD FOR u = 'x'");
}

#[test]
fn accounts_and_components_outlive_the_server() {
    let folder = tempfile::tempdir().unwrap();
    let open = || {
        let engine = crate::Engine::open(crate::EngineOptions {
            location: porpoise_storage::Location::Path(folder.path().into()),
            variables: Vec::new(),
        });
        let engine = engine.expect("opens");
        let session = engine.connect(Default::default()).expect("connects");
        Db { engine, session }
    };
    let mut root = open();
    root.run("INSTALL COMPONENT 'file://component_validate_password'");
    root.run("CREATE USER p IDENTIFIED BY 'Abcdef-0'");
    root.run(
        "CREATE USER u IDENTIFIED WITH sha256_password BY 'Abcdef-1' WITH MAX_UPDATES_PER_HOUR 3 \
         PASSWORD EXPIRE INTERVAL 5 DAY PASSWORD HISTORY 4 PASSWORD REUSE INTERVAL 6 DAY \
         PASSWORD REQUIRE CURRENT FAILED_LOGIN_ATTEMPTS 2 PASSWORD_LOCK_TIME UNBOUNDED \
         ACCOUNT LOCK ATTRIBUTE '{\"a\": 1}'",
    );
    root.run("ALTER USER u IDENTIFIED BY 'Abcdef-2' RETAIN CURRENT PASSWORD");
    root.run("GRANT PROXY ON p TO u WITH GRANT OPTION");
    let told = [
        "SELECT * FROM mysql.user",
        "SELECT * FROM mysql.password_history",
        "SELECT * FROM mysql.proxies_priv",
        "SELECT * FROM mysql.component",
        "SHOW CREATE USER u",
        "SHOW GRANTS FOR u",
    ];
    let tell = |db: &mut Db| told.map(|sql| db.rows(sql));
    let before = tell(&mut root);
    root.engine.close().expect("closes");
    drop(root);
    let mut root = open();
    assert_eq!(tell(&mut root), before);
    root.fails("ALTER USER u IDENTIFIED BY 'Abcdef-1'", 3638);
    root.fails("ALTER USER u IDENTIFIED BY 'abc'", 1819);
}

#[test]
fn passwords_expire_by_their_age() {
    let mut root = Db::new();
    root.run("CREATE USER u IDENTIFIED BY 'x' PASSWORD EXPIRE INTERVAL 2 DAY");
    let account = root.engine.account_for("u", "192.0.2.1", None).unwrap();
    assert!(!account.must_change_password(0));
    let mut old = Account::clone(&account);
    old.password_changed_us = Some(old.password_changed_us.unwrap() - 2 * 86_400_000_000);
    assert!(old.must_change_password(0));
    old.policy.lifetime_days = None;
    assert!(!old.must_change_password(0) && old.must_change_password(1));
}

#[test]
fn proxies_are_granted_by_who_may() {
    let (mut root, mut user) = with_user();
    root.run("CREATE USER p, q");
    user.fails("GRANT PROXY ON p TO q", 1698);
    root.run("GRANT PROXY ON p TO u WITH GRANT OPTION");
    user.run("GRANT PROXY ON p TO q");
    user.fails("GRANT PROXY ON q TO p", 1698);
    // The own account may always be lent.
    user.run("GRANT PROXY ON u TO q");
    assert_eq!(
        grants_of(&root, "q", "%")[1..],
        [
            "GRANT PROXY ON `p`@`%` TO `q`@`%`",
            "GRANT PROXY ON `u`@`%` TO `q`@`%`"
        ]
    );
    let rows = "SELECT user, proxied_user, proxied_host, with_grant, grantor \
                FROM mysql.proxies_priv WHERE user = 'q' AND proxied_user = 'p'";
    assert_eq!(root.rows(rows), ["q|p|%|0|u@%"]);
    user.run("REVOKE PROXY ON p FROM q");
    root.fails("REVOKE PROXY ON p FROM q", 1141);
    root.fails("GRANT PROXY ON p TO nobody", 1133);
}

#[test]
fn accounts_with_system_user_are_protected() {
    let (mut root, mut user) = with_user();
    root.run("GRANT CREATE USER ON *.* TO u");
    root.run("CREATE USER s");
    user.run("ALTER USER s ACCOUNT LOCK");
    root.run("GRANT SYSTEM_USER ON *.* TO s");
    for sql in [
        "ALTER USER s ACCOUNT UNLOCK",
        "SET PASSWORD FOR s = 'x'",
        "RENAME USER s TO t",
        "DROP USER s",
    ] {
        user.fails(sql, 1227);
    }
    root.run("GRANT SYSTEM_USER ON *.* TO u");
    user.run("DROP USER s");
}

#[test]
fn the_grant_tables_tell_what_is_granted() {
    let (mut root, _) = with_user();
    root.run("CREATE ROLE r");
    root.run("GRANT r TO u WITH ADMIN OPTION");
    root.run("ALTER USER u DEFAULT ROLE r");
    root.run("GRANT BACKUP_ADMIN ON *.* TO u WITH GRANT OPTION");
    root.run("GRANT SELECT ON d.* TO u");
    root.run("GRANT SELECT, DELETE, INSERT (a, b), UPDATE (b) ON d.t TO u WITH GRANT OPTION");
    root.run("CREATE USER w");
    login(&root, "u").run("GRANT SELECT ON d.t TO w");
    for (sql, row) in [
        (
            "SELECT grantor, timestamp > NOW() - INTERVAL 1 HOUR FROM mysql.tables_priv WHERE user = 'w'",
            "u@%|1",
        ),
        ("SELECT * FROM mysql.role_edges", "%|r|%|u|Y"),
        ("SELECT * FROM mysql.default_roles", "%|u|%|r"),
        (
            "SELECT * FROM mysql.global_grants WHERE user = 'u'",
            "u|%|BACKUP_ADMIN|Y",
        ),
        (
            "SELECT host, db, user, select_priv, insert_priv FROM mysql.db",
            "%|d|u|Y|N",
        ),
        (
            "SELECT host, db, user, table_name, grantor, table_priv, column_priv FROM mysql.tables_priv WHERE user = 'u'",
            "%|d|u|t||Select,Delete,Grant|Insert,Update",
        ),
        (
            "SELECT db, user, table_name, column_name, column_priv FROM mysql.columns_priv WHERE column_name = 'b'",
            "d|u|t|b|Insert,Update",
        ),
        (
            "SELECT COUNT(*) FROM information_schema.columns WHERE table_schema = 'mysql' AND table_name = 'user'",
            "51",
        ),
        ("SELECT COUNT(*) > 500 FROM mysql.time_zone_name", "1"),
        (
            "SELECT COUNT(*) FROM mysql.time_zone t LEFT JOIN mysql.time_zone_name n USING (time_zone_id) WHERE n.name IS NULL",
            "0",
        ),
    ] {
        assert_eq!(root.rows(sql), [row], "{sql}");
    }
    for table in [
        "procs_priv",
        "component",
        "plugin",
        "func",
        "servers",
        "help_topic",
        "help_category",
        "help_keyword",
        "help_relation",
        "general_log",
        "slow_log",
        "time_zone_leap_second",
        "time_zone_transition",
        "time_zone_transition_type",
    ] {
        assert_eq!(
            root.rows(&format!("SELECT * FROM mysql.{table}")),
            [""; 0],
            "{table}"
        );
        let shown = root
            .rows(&format!("SHOW CREATE TABLE mysql.{table}"))
            .concat();
        assert!(
            shown.contains(&format!("CREATE TABLE `{table}`")),
            "{shown}"
        );
    }
    let mut user = login(&root, "u");
    user.fails("SELECT * FROM mysql.tables_priv", 1142);
}

/// Programs read what their definer may read, or with SQL SECURITY INVOKER their caller, whichever
/// way they are called.
#[test]
fn a_program_reads_what_its_definer_may() {
    let (mut root, mut user) = with_user();
    root.run("CREATE DATABASE secret");
    root.run("CREATE TABLE secret.t (pw INT)");
    root.run("INSERT INTO secret.t VALUES (7340033)");
    root.run("GRANT SELECT, INSERT, UPDATE, CREATE ROUTINE, ALTER ROUTINE, TRIGGER ON d.* TO u");
    user.run("USE d");
    let read = "(SELECT MAX(pw) FROM secret.t)";
    let invoker = "SQL SECURITY INVOKER";
    root.run(&format!(
        "CREATE DEFINER = root@localhost PROCEDURE lent(OUT x INT) SET x = {read} - 33"
    ));
    root.run(&format!(
        "CREATE DEFINER = root@localhost PROCEDURE kept(OUT x INT) {invoker} SET x = {read}"
    ));
    root.run(&format!(
        "CREATE DEFINER = root@localhost FUNCTION f() RETURNS INT DETERMINISTIC RETURN {read} - 33"
    ));
    root.run(&format!(
        "CREATE DEFINER = root@localhost FUNCTION g() RETURNS INT DETERMINISTIC {invoker} RETURN {read}"
    ));
    for statement in [
        "CALL lent(@x)",
        "SELECT f()",
        "INSERT INTO t (a) VALUES (f())",
    ] {
        user.fails(statement, 1370);
    }
    root.run("GRANT EXECUTE ON d.* TO u");
    user.run("CALL lent(@x)");
    assert_eq!(user.rows("SELECT @x, f()"), ["7340000|7340000"]);
    for statement in [
        "CALL kept(@x)",
        "SELECT g()",
        "INSERT INTO t (a) VALUES (g())",
    ] {
        user.fails(statement, 1142);
    }
    // Whoever makes a program lends nothing that they don't have.
    user.run(&format!("CREATE PROCEDURE own() SELECT {read}"));
    user.run(&format!(
        "CREATE TRIGGER r BEFORE INSERT ON t FOR EACH ROW SET NEW.a = {read}"
    ));
    user.fails("CALL own()", 1142);
    user.fails("INSERT INTO t VALUES (1, 1)", 1142);
    // Whoever may read everything runs them with their definer's rights, too.
    root.run("CREATE USER admin");
    root.run("GRANT ALL ON *.* TO admin");
    let mut admin = login(&root, "admin");
    admin.run("USE d");
    admin.fails("CALL own()", 1142);
    let refused = admin.try_run("CALL own()").expect_err("refused");
    assert!(refused.message().contains("'u'@'%'"), "{refused}");
    admin.fails("INSERT INTO t VALUES (1, 1)", 1142);
    user.fails(
        "CREATE DEFINER = root@localhost PROCEDURE p() SELECT 1",
        1227,
    );
    user.fails("CREATE PROCEDURE secret.p() SELECT 1", 1044);
    user.fails(
        "CREATE TRIGGER secret.p BEFORE INSERT ON secret.t FOR EACH ROW SET @a = 1",
        1142,
    );
    root.run("CREATE TRIGGER secret.q BEFORE INSERT ON secret.t FOR EACH ROW SET @a = 1");
    user.fails("DROP TRIGGER secret.q", 1142);
    user.fails("DROP PROCEDURE secret.p", 1370);
    user.fails("ALTER FUNCTION secret.f COMMENT 'x'", 1370);
    user.run("DROP TRIGGER r");
    root.run("DROP USER u");
    admin.fails("CALL own()", 1449);
    assert_eq!(root.rows("SELECT COUNT(*) FROM t"), ["0"]);
}

/// A dump drops the tables of the schema `mysql`, makes them anew and fills them. The server keeps
/// its own, and the accounts stay as they are.
#[test]
fn dumps_of_the_schema_mysql_can_be_loaded() {
    let mut root = Db::new();
    root.run("CREATE USER u");
    root.run("GRANT SELECT ON d.* TO u");
    root.fails("CREATE TABLE mysql.db (a INT)", 1050);
    root.fails("DROP TABLE mysql.db", 1044);
    root.fails("DROP TABLE IF EXISTS information_schema.tables", 1044);
    root.fails("INSERT INTO mysql.db VALUES (1)", 1044);
    let warned = "Warning|3554|Access to system table 'mysql.db' is rejected.";
    for _ in 0..2 {
        root.run("DROP TABLE IF EXISTS mysql.db");
        assert_eq!(
            root.rows("SELECT user FROM mysql.db WHERE user = 'u'"),
            ["u"]
        );
        root.run(
            "CREATE TABLE mysql.db (Host CHAR(60), Db CHAR(64), PRIMARY KEY (Host, Db)) \
             ENGINE=Aria PAGE_CHECKSUM=1 TRANSACTIONAL=1",
        );
        let warnings = root.rows("SHOW WARNINGS");
        assert!(warnings.contains(&warned.to_string()), "{warnings:?}");
        root.run("LOCK TABLES mysql.db WRITE");
        root.run("ALTER TABLE mysql.db DISABLE KEYS");
        root.run("INSERT INTO mysql.db VALUES ('h', 'e')");
        root.run("ALTER TABLE mysql.db ENABLE KEYS");
        root.run("UNLOCK TABLES");
        assert_eq!(root.rows("SELECT * FROM mysql.db"), ["h|e"]);
    }
    root.run("DROP TABLE IF EXISTS mysql.user");
    root.run("DROP VIEW IF EXISTS mysql.user");
    root.run("CREATE VIEW mysql.user AS SELECT 1 AS a");
    root.fails("DROP VIEW IF EXISTS mysql.tables_priv", 1347);
    root.run("CREATE TABLE IF NOT EXISTS mysql.general_log (a INT)");
    root.run("CREATE USER other");
    root.run("GRANT ALL ON *.* TO other");
    let mut other = login(&root, "other");
    let users = "SELECT user FROM mysql.db WHERE user = 'u'";
    assert_eq!(other.rows(users), ["u"]);
    other.fails("CREATE TABLE mysql.db (a INT)", 1050);
    let mut user = login(&root, "u");
    user.fails("DROP TABLE IF EXISTS mysql.db", 1142);
}

/// Who may read a table of the server's own may make one like it, as those do who rotate the logs.
#[test]
fn tables_like_the_servers_own_take_rows() {
    let mut root = Db::new();
    root.run("CREATE TABLE mysql.kept LIKE mysql.general_log");
    root.run("INSERT INTO mysql.kept VALUES (NOW(6), 'me', 1, 2, 'Query', 'SELECT 1')");
    root.run("INSERT INTO mysql.kept SELECT * FROM mysql.general_log");
    assert_eq!(
        root.rows("SELECT command_type, argument FROM mysql.kept"),
        ["Query|SELECT 1"]
    );
    root.run("CREATE TEMPORARY TABLE copy LIKE mysql.user");
    root.run("INSERT INTO copy SELECT * FROM mysql.user");
    assert_eq!(
        root.rows("SELECT Host, User FROM copy WHERE User = 'root'"),
        ["localhost|root"]
    );
    root.fails("CREATE TABLE p LIKE performance_schema.threads", 1044);
    root.run("CREATE USER u");
    root.run("GRANT CREATE ON *.* TO u");
    let mut user = login(&root, "u");
    user.fails("CREATE TABLE mysql.mine LIKE mysql.general_log", 1142);
    root.run("GRANT SELECT ON mysql.general_log TO u");
    user.run("CREATE TABLE mysql.mine LIKE mysql.general_log");
    let comments = "SELECT table_name, engine, table_comment FROM information_schema.tables
        WHERE table_schema = 'mysql' AND table_name IN ('db', 'mine', 'slow_log') ORDER BY 1";
    assert_eq!(
        root.rows(comments),
        [
            "db|InnoDB|Database privileges",
            "mine|InnoDB|General log",
            "slow_log|CSV|Slow log"
        ]
    );
}

/// Tables of the server's own have MySQL's defaults and keys, and so has what is made like them.
#[test]
fn the_servers_own_tables_have_keys_and_defaults() {
    let mut root = Db::new();
    let described = root.rows("DESCRIBE mysql.tables_priv");
    for line in [
        "Host|char(255)|NO|PRI||",
        "Grantor|varchar(288)|NO|MUL||",
        "Timestamp|timestamp|NO||CURRENT_TIMESTAMP|DEFAULT_GENERATED on update CURRENT_TIMESTAMP",
    ] {
        assert!(described.contains(&line.to_string()), "{described:?}");
    }
    assert_eq!(
        root.rows(
            "SELECT column_name, column_default FROM information_schema.columns
             WHERE table_schema = 'mysql' AND table_name = 'user' AND column_name IN ('plugin', 'Super_priv', 'max_updates', 'ssl_type', 'User_attributes')
             ORDER BY ordinal_position"
        ),
        [
            "Super_priv|N",
            "ssl_type|",
            "max_updates|0",
            "plugin|caching_sha2_password",
            "User_attributes|NULL"
        ]
    );
    let parts =
        "SELECT index_name, seq_in_index, column_name, collation FROM information_schema.statistics
        WHERE table_schema = 'mysql' AND table_name = 'password_history' ORDER BY 1, 2";
    assert_eq!(
        root.rows(parts),
        [
            "PRIMARY|1|Host|A",
            "PRIMARY|2|User|A",
            "PRIMARY|3|Password_timestamp|D"
        ]
    );
    assert_eq!(
        root.rows(
            "SELECT constraint_name, constraint_type FROM information_schema.table_constraints
             WHERE table_schema = 'mysql' AND table_name = 'help_topic' ORDER BY 1"
        ),
        ["name|UNIQUE", "PRIMARY|PRIMARY KEY"]
    );
    let text = root.rows("SHOW CREATE TABLE mysql.default_roles").concat();
    for part in [
        "`DEFAULT_ROLE_HOST` char(255) CHARACTER SET utf8mb3 COLLATE utf8mb3_general_ci NOT NULL DEFAULT '%'",
        "PRIMARY KEY (`HOST`,`USER`,`DEFAULT_ROLE_HOST`,`DEFAULT_ROLE_USER`)",
        "COMMENT='Default roles'",
    ] {
        assert!(text.contains(part), "{text}");
    }
    root.run("CREATE TABLE kept LIKE mysql.default_roles");
    root.run("INSERT INTO kept (USER) VALUES ('u')");
    root.fails("INSERT INTO kept (USER) VALUES ('u')", 1062);
    assert_eq!(root.rows("SELECT * FROM kept"), ["|u|%|"]);
    // Each can be made from what SHOW CREATE TABLE prints of it.
    let names =
        root.rows("SELECT table_name FROM information_schema.tables WHERE table_schema = 'mysql'");
    for name in names {
        let shown = root
            .rows(&format!("SHOW CREATE TABLE mysql.{name}"))
            .concat();
        let text = shown.split_once('|').expect("a name and a text").1;
        root.run(&text.replacen(&format!("`{name}`"), "d.made", 1));
        root.run(&format!("CREATE TABLE d.alike LIKE mysql.{name}"));
        let columns = |table| format!("SHOW FULL COLUMNS FROM d.{table}");
        assert_eq!(
            root.rows(&columns("made")),
            root.rows(&columns("alike")),
            "{name}"
        );
        root.run("DROP TABLE d.made, d.alike");
    }
}

/// A log is rotated by giving its table another name.
#[test]
fn logs_are_renamed() {
    let mut root = Db::new();
    let log = |db: &Db, what: &str| {
        let fields: [&[u8]; 6] = [
            b"1700000000123456",
            b"me",
            b"7",
            b"1",
            b"Query",
            what.as_bytes(),
        ];
        db.engine
            .log_tables()
            .general
            .append(&fields)
            .expect("an entry");
    };
    root.run(
        "SET GLOBAL log_output = 'TABLE', GLOBAL general_log = 1, SESSION time_zone = '+02:00'",
    );
    log(&root, "one");
    log(&root, "two");
    root.fails("RENAME TABLE mysql.general_log TO mysql.kept", 1581);
    root.fails("DROP TABLE mysql.general_log", 1580);
    root.fails("ALTER TABLE mysql.general_log ENGINE = MyISAM", 1580);
    for change in [
        "DELETE FROM mysql.general_log",
        "UPDATE mysql.general_log SET argument = ''",
        "INSERT INTO mysql.slow_log SELECT * FROM mysql.slow_log",
    ] {
        root.fails(change, 1556);
    }
    root.run("CREATE TABLE mysql.next LIKE mysql.general_log");
    root.fails("RENAME TABLE mysql.next TO mysql.general_log", 1050);
    root.run("RENAME TABLE mysql.general_log TO mysql.kept, mysql.next TO mysql.general_log");
    log(&root, "three");
    assert_eq!(
        root.rows("SELECT event_time, thread_id, argument FROM mysql.kept"),
        [
            "2023-11-15 00:13:20.123456|7|one",
            "2023-11-15 00:13:20.123456|7|two"
        ]
    );
    assert_eq!(
        root.rows("SELECT argument FROM mysql.general_log"),
        ["three"]
    );
    root.fails("SELECT * FROM mysql.next", 1146);
    // Another step fails: everything is as before.
    root.run("CREATE TABLE mysql.next LIKE mysql.general_log");
    root.fails(
        "RENAME TABLE mysql.general_log TO mysql.second, mysql.next TO mysql.general_log, none TO other",
        1146,
    );
    root.fails("SELECT * FROM mysql.second", 1146);
    root.fails(
        "RENAME TABLE mysql.general_log TO mysql.kept, mysql.next TO mysql.general_log",
        1050,
    );
    assert_eq!(
        root.rows("SELECT argument FROM mysql.general_log"),
        ["three"]
    );
    // One that isn't written to is emptied in three statements.
    root.run("SET GLOBAL general_log = 0");
    root.fails("RENAME TABLE mysql.next TO mysql.general_log", 1050);
    root.run("RENAME TABLE mysql.general_log TO mysql.off");
    root.run("DELETE FROM mysql.off WHERE argument <> 'three'");
    root.run("RENAME TABLE mysql.off TO mysql.general_log");
    root.fails("SELECT * FROM mysql.off", 1146);
    assert_eq!(
        root.rows("SELECT event_time, argument FROM mysql.general_log"),
        ["2023-11-15 00:13:20.123456|three"]
    );
    root.run("RENAME TABLE mysql.general_log TO mysql.off");
    root.run("CREATE TABLE mysql.strange (a INT)");
    root.fails("RENAME TABLE mysql.strange TO mysql.general_log", 1235);
    // It may be dropped, too: its entries go.
    log(&root, "four");
    root.fails("DROP TABLE mysql.general_log, mysql.none", 1051);
    assert_eq!(
        root.rows("SELECT argument FROM mysql.general_log"),
        ["four"]
    );
    root.run("DROP TABLE mysql.general_log");
    assert_eq!(root.rows("SHOW WARNINGS").len(), 1);
    assert!(root.rows("SELECT * FROM mysql.general_log").is_empty());
    log(&root, "five");
    root.run("SET GLOBAL general_log = 1");
    root.fails("DROP TABLE IF EXISTS mysql.general_log", 1580);
    assert_eq!(
        root.rows("SELECT argument FROM mysql.general_log"),
        ["five"]
    );
    root.run("SET GLOBAL general_log = 0");
    root.run("DROP TABLE IF EXISTS mysql.general_log, mysql.kept");
    assert!(root.rows("SELECT * FROM mysql.general_log").is_empty());
    root.fails("SELECT * FROM mysql.kept", 1146);
}

/// A trigger's definer needs TRIGGER when it is fired, SELECT on the columns of its rows that it
/// reads, and UPDATE on those that it changes.
#[test]
fn definers_of_triggers_keep_their_privileges() {
    let mut root = Db::new();
    root.run("CREATE TABLE t (a INT, b INT)");
    root.run("CREATE USER u, admin");
    root.run("GRANT TRIGGER, INSERT ON d.t TO u");
    root.run("GRANT ALL ON *.* TO admin");
    let mut user = login(&root, "u");
    let mut admin = login(&root, "admin");
    admin.run("USE d");
    user.run("USE d");
    user.run("CREATE TRIGGER r BEFORE INSERT ON t FOR EACH ROW SET NEW.b = 1");
    user.fails("INSERT INTO t VALUES (1, 1)", 1143);
    let refused = admin.try_run("INSERT INTO t VALUES (1, 1)");
    let refused = refused.expect_err("refused");
    assert_eq!(
        refused.message(),
        "UPDATE command denied to user 'u'@'%' for column 'b' in table 't'"
    );
    root.run("GRANT UPDATE (b) ON d.t TO u");
    admin.run("INSERT INTO t VALUES (1, 2)");
    user.run("INSERT INTO t VALUES (1, 2)");
    user.run("DROP TRIGGER r");
    user.run("CREATE TRIGGER r BEFORE INSERT ON t FOR EACH ROW SET NEW.b = NEW.b + NEW.a");
    admin.fails("INSERT INTO t VALUES (1, 1)", 1143);
    root.run("GRANT SELECT (a), SELECT (b) ON d.t TO u");
    admin.run("INSERT INTO t VALUES (1, 1)");
    root.run("REVOKE TRIGGER ON d.t FROM u");
    admin.fails("INSERT INTO t VALUES (1, 1)", 1142);
    assert_eq!(root.rows("SELECT a, b FROM t"), ["1|1", "1|1", "1|2"]);
}
