//! The shell's own commands: a row each, with the names and letters that people know from `mysql`.

/// What a command does.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Action {
    Help,
    Clear,
    Connect,
    Delimiter,
    Go { vertical: bool },
    Quit,
    Warnings(bool),
    Print,
    Rehash,
    Source,
    Status,
    System,
    Tee(bool),
    Use,
    ResetConnection,
}

#[derive(Debug, PartialEq)]
pub struct Command {
    pub name: &'static str,
    pub letter: char,
    /// An argument may follow, to the end of the line.
    pub takes: bool,
    pub action: Action,
    pub help: &'static str,
}

const fn row(
    name: &'static str,
    letter: char,
    takes: bool,
    action: Action,
    help: &'static str,
) -> Command {
    Command {
        name,
        letter,
        takes,
        action,
        help,
    }
}

pub static COMMANDS: &[Command] = &[
    row("?", '?', true, Action::Help, "Synonym for `help'."),
    row(
        "clear",
        'c',
        false,
        Action::Clear,
        "Clear the current input statement.",
    ),
    row(
        "connect",
        'r',
        true,
        Action::Connect,
        "Reconnect to the server. Optional argument is db.",
    ),
    row(
        "delimiter",
        'd',
        true,
        Action::Delimiter,
        "Set statement delimiter.",
    ),
    row(
        "ego",
        'G',
        false,
        Action::Go { vertical: true },
        "Send command to server, display result vertically.",
    ),
    row("exit", 'q', false, Action::Quit, "Exit. Same as quit."),
    row(
        "go",
        'g',
        false,
        Action::Go { vertical: false },
        "Send command to server.",
    ),
    row("help", 'h', true, Action::Help, "Display this help."),
    row(
        "nowarning",
        'w',
        false,
        Action::Warnings(false),
        "Don't show warnings after every statement.",
    ),
    row(
        "notee",
        't',
        false,
        Action::Tee(false),
        "Don't write into outfile.",
    ),
    row("print", 'p', false, Action::Print, "Print current command."),
    row("quit", 'q', false, Action::Quit, "Quit."),
    row(
        "rehash",
        '#',
        false,
        Action::Rehash,
        "Rebuild completion of names.",
    ),
    row(
        "source",
        '.',
        true,
        Action::Source,
        "Execute an SQL script file. Takes a file name as an argument.",
    ),
    row(
        "status",
        's',
        false,
        Action::Status,
        "Get status information from the server.",
    ),
    row(
        "system",
        '!',
        true,
        Action::System,
        "Execute a system shell command.",
    ),
    row(
        "tee",
        'T',
        true,
        Action::Tee(true),
        "Set outfile [to_outfile]. Append everything into given outfile.",
    ),
    row(
        "use",
        'u',
        true,
        Action::Use,
        "Use another database. Takes database name as argument.",
    ),
    row(
        "warnings",
        'W',
        false,
        Action::Warnings(true),
        "Show warnings after every statement.",
    ),
    row(
        "resetconnection",
        'x',
        false,
        Action::ResetConnection,
        "Clean session context.",
    ),
];

/// The command whose name a line begins with, and what follows it.
pub fn named<'l>(line: &'l str, delimiter: &str) -> Option<(&'static Command, &'l str)> {
    let line = line.trim();
    let (word, rest) = line.split_once(char::is_whitespace).unwrap_or((line, ""));
    let bare = word.strip_suffix(delimiter).unwrap_or(word);
    let command = COMMANDS
        .iter()
        .find(|command| command.name.eq_ignore_ascii_case(bare))?;
    let argument = argument(command, rest, delimiter);
    (command.takes || argument.is_empty()).then_some((command, argument))
}

pub fn lettered(letter: char) -> Option<&'static Command> {
    COMMANDS.iter().find(|command| command.letter == letter)
}

/// An argument without what is around it: spaces, the delimiter, quotes.
pub fn argument<'l>(command: &Command, rest: &'l str, delimiter: &str) -> &'l str {
    let rest = rest.trim();
    if command.action == Action::Delimiter {
        return quoted_or_word(rest);
    }
    let rest = rest.strip_suffix(delimiter).unwrap_or(rest).trim();
    let quoted = ['`', '\'', '"']
        .into_iter()
        .find_map(|quote| rest.strip_prefix(quote)?.strip_suffix(quote));
    quoted.unwrap_or(rest)
}

/// What stands in quotes, else the first word.
fn quoted_or_word(rest: &str) -> &str {
    let within = |quote: char| Some(rest.strip_prefix(quote)?.split_once(quote)?.0);
    let quoted = ['`', '\'', '"'].into_iter().find_map(within);
    quoted.unwrap_or_else(|| rest.split_whitespace().next().unwrap_or_default())
}

/// The list that `help` shows.
pub fn help() -> String {
    let mut text = "\nList of all Porpoise commands:\n\
                    Note that all text commands must be first on line and end with ';'\n"
        .to_string();
    for Command {
        name, letter, help, ..
    } in COMMANDS
    {
        text.push_str(&format!("{name:<15} (\\{letter}) {help}\n"));
    }
    text
}
