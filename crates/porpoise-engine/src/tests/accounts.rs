//! Who may do what, from GRANT to refusal.

use std::sync::Arc;

use porpoise_accounts::Accounts;
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
