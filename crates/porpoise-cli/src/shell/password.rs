//! A password, asked for at the terminal and not shown there.

use std::fs::File;
use std::io::{self, BufRead, Read, Write};

use rustix::termios::{
    LocalModes, OptionalActions, SpecialCodeIndex, Termios, tcgetattr, tcsetattr,
};

/// The terminal, without echo and key by key until dropped.
struct Silent<'a> {
    terminal: &'a File,
    before: Termios,
}

impl<'a> Silent<'a> {
    fn new(terminal: &'a File) -> io::Result<Silent<'a>> {
        let before = tcgetattr(terminal)?;
        let mut silent = before.clone();
        // Ctrl-C comes as a key, too, so that nobody is left with a terminal that doesn't echo.
        silent.local_modes -= LocalModes::ECHO | LocalModes::ICANON | LocalModes::ISIG;
        silent.special_codes[SpecialCodeIndex::VMIN] = 1;
        silent.special_codes[SpecialCodeIndex::VTIME] = 0;
        // What was typed before the question was no answer.
        tcsetattr(terminal, OptionalActions::Flush, &silent)?;
        Ok(Silent { terminal, before })
    }
}

impl Drop for Silent<'_> {
    fn drop(&mut self) {
        // A terminal that is gone needs no echo.
        let _ = tcsetattr(self.terminal, OptionalActions::Now, &self.before);
    }
}

/// Asks at the terminal that this program belongs to, wherever its input comes from. Without one,
/// the next line of the input is the answer.
pub fn ask(question: &str) -> io::Result<String> {
    let Ok(mut terminal) = File::options().read(true).write(true).open("/dev/tty") else {
        let mut line = String::new();
        io::stdin().lock().read_line(&mut line)?;
        let end = line.trim_end_matches(['\r', '\n']).len();
        line.truncate(end);
        return Ok(line);
    };
    let silent = Silent::new(&terminal)?;
    (&terminal).write_all(question.as_bytes())?;
    let answer = read_keys(&terminal);
    drop(silent);
    terminal.write_all(b"\n")?;
    answer
}

/// Reads keys up to Enter. They can be taken back one by one (Backspace) or all (Ctrl-U); Ctrl-C
/// gives up.
fn read_keys(mut keys: impl Read) -> io::Result<String> {
    const CTRL_C: u8 = 3;
    const CTRL_D: u8 = 4;
    const BACKSPACE: u8 = 8;
    const CTRL_U: u8 = 21;
    const DELETE: u8 = 127;
    let mut typed = Vec::new();
    loop {
        let mut key = [0];
        match keys.read(&mut key) {
            Ok(0) => break,
            Err(error) if error.kind() == io::ErrorKind::Interrupted => continue,
            read => read?,
        };
        match key[0] {
            b'\r' | b'\n' => break,
            CTRL_C => return Err(io::ErrorKind::Interrupted.into()),
            CTRL_D if typed.is_empty() => return Err(io::ErrorKind::UnexpectedEof.into()),
            CTRL_U => typed.clear(),
            BACKSPACE | DELETE => {
                // A letter is its first byte and those that continue it.
                while typed.pop().is_some_and(|byte| byte & 0xC0 == 0x80) {}
            }
            byte => typed.push(byte),
        }
    }
    String::from_utf8(typed).map_err(|_| io::ErrorKind::InvalidData.into())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn keys_can_be_taken_back() {
        let read = |keys: &str| read_keys(keys.as_bytes());
        assert_eq!(read("sesame\rx").unwrap(), "sesame");
        assert_eq!(read("sesö\x7fame\n").unwrap(), "sesame");
        assert_eq!(read("\x7f\x08no\x15sésame\n").unwrap(), "sésame");
        assert_eq!(read("a\x04b\n").unwrap(), "a\x04b");
        assert_eq!(
            read("no\x03\n").unwrap_err().kind(),
            io::ErrorKind::Interrupted
        );
        assert_eq!(
            read("\x04").unwrap_err().kind(),
            io::ErrorKind::UnexpectedEof
        );
    }
}
