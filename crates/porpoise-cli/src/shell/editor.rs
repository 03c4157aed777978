//! The line editor: prompts, history, completion, and how it knows that a statement is complete.

use std::borrow::Cow;
use std::path::PathBuf;
use std::sync::Arc;

use parking_lot::Mutex;
use reedline::{
    ColumnarMenu, Emacs, FileBackedHistory, History, HistoryItem, HistoryItemId, HistorySessionId,
    KeyCode, KeyModifiers, MenuBuilder, Prompt, PromptEditMode, PromptHistorySearch, Reedline,
    ReedlineEvent, ReedlineMenu, SearchQuery, Signal, ValidationResult, Validator,
    default_emacs_keybindings,
};

use super::input::{Input, Item};
use super::names::{NameCompleter, Names};

const HISTORY_MAX: usize = 10_000;
const MENU: &str = "names";

/// What a person typed.
pub enum Typed {
    Text(String),
    /// Ctrl-C: what was typed is dropped.
    Dropped,
    /// Ctrl-D.
    End,
}

pub struct Editor(Reedline);

impl Editor {
    pub fn new(names: Arc<Mutex<Names>>, delimiter: Arc<Mutex<String>>) -> Editor {
        let mut keys = default_emacs_keybindings();
        keys.add_binding(
            KeyModifiers::NONE,
            KeyCode::Tab,
            ReedlineEvent::UntilFound(vec![
                ReedlineEvent::Menu(MENU.to_string()),
                ReedlineEvent::MenuNext,
            ]),
        );
        let menu = Box::new(ColumnarMenu::default().with_name(MENU));
        let mut editor = Reedline::create()
            .with_completer(Box::new(NameCompleter(names)))
            .with_quick_completions(true)
            .with_partial_completions(true)
            .with_menu(ReedlineMenu::EngineCompleter(menu))
            .with_edit_mode(Box::new(Emacs::new(keys)))
            .with_validator(Box::new(Complete(delimiter)));
        if let Some(history) = history() {
            editor = editor.with_history(Box::new(history));
        }
        Editor(editor)
    }

    pub fn read(&mut self) -> std::io::Result<Typed> {
        Ok(match self.0.read_line(&Prompts)? {
            Signal::Success(text) => Typed::Text(text),
            Signal::CtrlD => Typed::End,
            _ => Typed::Dropped,
        })
    }
}

/// In the file of `PORPOISE_HISTFILE`, or `~/.porpoise_history`.
fn history() -> Option<Discreet> {
    let file = match std::env::var_os("PORPOISE_HISTFILE") {
        Some(file) => PathBuf::from(file),
        None => PathBuf::from(std::env::var_os("HOME")?).join(".porpoise_history"),
    };
    let history = FileBackedHistory::with_file(HISTORY_MAX, file);
    if let Err(error) = &history {
        tracing::warn!("no history: {error}");
    }
    Some(Discreet(history.ok()?))
}

struct Prompts;

impl Prompt for Prompts {
    fn render_prompt_left(&self) -> Cow<'_, str> {
        "porpoise".into()
    }

    fn render_prompt_right(&self) -> Cow<'_, str> {
        "".into()
    }

    fn render_prompt_indicator(&self, _: PromptEditMode) -> Cow<'_, str> {
        "> ".into()
    }

    fn render_prompt_multiline_indicator(&self) -> Cow<'_, str> {
        "      -> ".into()
    }

    fn render_prompt_history_search_indicator(&self, search: PromptHistorySearch) -> Cow<'_, str> {
        format!("(search: {}) ", search.term).into()
    }
}

/// Enter sends what is complete, and begins a new line otherwise.
struct Complete(Arc<Mutex<String>>);

impl Validator for Complete {
    fn validate(&self, text: &str) -> ValidationResult {
        let mut input = Input::new(&self.0.lock());
        for line in text.split('\n') {
            for item in input.feed(line) {
                if let Item::Command {
                    command, argument, ..
                } = &item
                    && command.name == "delimiter"
                {
                    input.delimiter.clone_from(argument);
                }
            }
        }
        if input.is_open() {
            ValidationResult::Incomplete
        } else {
            ValidationResult::Complete
        }
    }
}

/// A history that doesn't keep passwords.
struct Discreet(FileBackedHistory);

fn is_secret(text: &str) -> bool {
    let text = text.to_ascii_uppercase();
    text.contains("IDENTIFIED") || text.contains("PASSWORD")
}

impl History for Discreet {
    fn save(&mut self, item: HistoryItem) -> reedline::Result<HistoryItem> {
        if is_secret(&item.command_line) {
            return Ok(item);
        }
        self.0.save(item)
    }

    fn load(&self, id: HistoryItemId) -> reedline::Result<HistoryItem> {
        self.0.load(id)
    }

    fn count(&self, query: SearchQuery) -> reedline::Result<i64> {
        self.0.count(query)
    }

    fn search(&self, query: SearchQuery) -> reedline::Result<Vec<HistoryItem>> {
        self.0.search(query)
    }

    fn update(
        &mut self,
        id: HistoryItemId,
        updater: &dyn Fn(HistoryItem) -> HistoryItem,
    ) -> reedline::Result<()> {
        self.0.update(id, updater)
    }

    fn clear(&mut self) -> reedline::Result<()> {
        self.0.clear()
    }

    fn delete(&mut self, id: HistoryItemId) -> reedline::Result<()> {
        self.0.delete(id)
    }

    fn sync(&mut self) -> std::io::Result<()> {
        self.0.sync()
    }

    fn session(&self) -> Option<HistorySessionId> {
        self.0.session()
    }
}
