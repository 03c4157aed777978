//! Tables of one subject, or of two side by side.

use std::fmt;

use super::{Profile, Role, Stacks};

/// Characters of a function's name that are shown.
const NAME_CHARS: usize = 100;

/// The hottest functions, with ranks.
#[derive(Debug)]
pub struct Functions {
    role: Role,
    heads: Vec<String>,
    /// A function's name, then rank and share of each subject that has it.
    rows: Vec<(String, Vec<Option<(usize, f64)>>)>,
}

impl Functions {
    /// Of a role: those that are among the `most` first of any subject.
    pub fn of(role: Role, subjects: &[&Profile], most: usize) -> Self {
        let ranked: Vec<Vec<(String, f64)>> = subjects
            .iter()
            .map(|subject| subject.role(role).map(shares).unwrap_or_default())
            .collect();
        let mut names: Vec<&str> = Vec::new();
        for (name, _) in ranked.iter().flat_map(|ranked| ranked.iter().take(most)) {
            if !names.contains(&name.as_str()) {
                names.push(name);
            }
        }
        let place = |ranked: &Vec<(String, f64)>, name: &str| {
            let at = ranked.iter().position(|(own, _)| own == name)?;
            Some((at + 1, ranked[at].1))
        };
        let rows = names.iter().map(|name| {
            let places = ranked.iter().map(|ranked| place(ranked, name));
            ((*name).to_owned(), places.collect())
        });
        Self {
            role,
            heads: subjects
                .iter()
                .map(|subject| subject.name.clone())
                .collect(),
            rows: rows.collect(),
        }
    }

    /// Whether nobody has any.
    pub fn is_empty(&self) -> bool {
        self.rows.is_empty()
    }
}

/// Functions with their shares of all samples, in percent.
fn shares(stacks: &Stacks) -> Vec<(String, f64)> {
    let total = stacks.total().max(1) as f64;
    let share = |(name, count): (String, u64)| (name, 100.0 * count as f64 / total);
    stacks.functions().into_iter().map(share).collect()
}

impl fmt::Display for Functions {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        writeln!(
            f,
            "hottest functions, {}: rank and share of samples",
            self.role
        )?;
        for head in &self.heads {
            write!(f, "{head:>28}  ")?;
        }
        writeln!(f, "function")?;
        for (name, places) in &self.rows {
            for place in places {
                match place {
                    Some((rank, share)) => write!(f, "{rank:>20} {share:>5.1} %  ")?,
                    None => write!(f, "{:>28}  ", "-")?,
                }
            }
            if let [Some((_, one)), Some((_, other))] = places[..] {
                write!(f, "{:+6.1}  ", other - one)?;
            } else if places.len() == 2 {
                write!(f, "{:8}", "")?;
            }
            writeln!(f, "{}", shortened(name))?;
        }
        Ok(())
    }
}

/// Switches of context a second of a role, by what `sites` makes of stacks.
fn switches(
    role: Role,
    subject: &Profile,
    sites: impl Fn(&Stacks) -> Vec<(String, u64)>,
) -> Vec<(String, f64)> {
    let each = subject.off_cpu.iter();
    let all: u64 = each.map(|(_, stacks)| stacks.total()).sum();
    let own = subject.off_cpu.iter().find(|(own, _)| *own == role);
    // Samples say how they are shared out; how many there are is counted by the kernel.
    let a_second = |count: u64| subject.switches * count as f64 / all.max(1) as f64;
    let rows = own.map(|(_, stacks)| sites(stacks)).unwrap_or_default();
    let rows = rows.into_iter();
    rows.map(|(name, count)| (name, a_second(count))).collect()
}

/// Locks that weren't free, by who asked: what they cost while a thread turns in place, and how often
/// one goes to sleep or gives its CPU away.
#[derive(Debug)]
pub struct Locks {
    title: String,
    /// A name, the share of samples in percent, switches of context a second.
    rows: Vec<(String, f64, f64)>,
}

impl Locks {
    /// Of a role.
    pub fn of(role: Role, subject: &Profile, most: usize) -> Self {
        let stacks = subject.role(role);
        let total = stacks.map_or(0, Stacks::total).max(1) as f64;
        let turning = stacks.map(Stacks::contended_locks).unwrap_or_default();
        let share = |(name, count): (String, u64)| (name, 100.0 * count as f64 / total, 0.0);
        let mut rows: Vec<_> = turning.into_iter().map(share).collect();
        for (name, a_second) in switches(role, subject, Stacks::contended_locks) {
            match rows.iter_mut().find(|(own, ..)| *own == name) {
                Some(row) => row.2 = a_second,
                None => rows.push((name, 0.0, a_second)),
            }
        }
        rows.sort_by(|one, other| {
            (other.2, other.1)
                .partial_cmp(&(one.2, one.1))
                .expect("finite")
        });
        rows.truncate(most);
        Self {
            title: format!("{}, {role}", subject.name),
            rows,
        }
    }
}

impl fmt::Display for Locks {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        writeln!(
            f,
            "{}: locks that weren't free: switches of context a second, share of samples",
            self.title
        )?;
        if self.rows.is_empty() {
            writeln!(f, "{:>12}  in no sample", "none")?;
        }
        for (name, share, a_second) in &self.rows {
            writeln!(f, "{a_second:>12.0}  {share:>5.1} %  {}", shortened(name))?;
        }
        Ok(())
    }
}

/// Where threads stop.
#[derive(Debug)]
pub struct Sites {
    title: String,
    rows: Vec<(String, f64)>,
}

impl Sites {
    /// Switches of context a second of a role, by who waits.
    pub fn waits(role: Role, subject: &Profile, most: usize) -> Self {
        let title = format!(
            "{}, {role}: switches of context a second, by who waits",
            subject.name
        );
        let mut rows = switches(role, subject, Stacks::waiting_sites);
        rows.truncate(most);
        Self { title, rows }
    }

    /// Whether there are none.
    pub fn is_empty(&self) -> bool {
        self.rows.is_empty()
    }
}

impl fmt::Display for Sites {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        writeln!(f, "{}", self.title)?;
        for (name, a_second) in &self.rows {
            writeln!(f, "{a_second:>12.0}  {}", shortened(name))?;
        }
        Ok(())
    }
}

fn shortened(name: &str) -> String {
    match name.char_indices().nth(NAME_CHARS) {
        Some((end, _)) => format!("{}…", &name[..end]),
        None => name.to_owned(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn profile(name: &str, folded: &str) -> Profile {
        Profile {
            name: name.into(),
            throughput: 1.0,
            switches: 1000.0,
            on_cpu: vec![(Role::Server, Stacks::parse(folded))],
            off_cpu: vec![(Role::Server, Stacks::parse(folded))],
        }
    }

    #[test]
    fn ranks_of_two_versions_stand_side_by_side() {
        let old = profile("old", "a;parse 50\na;plan 30\na;read 20\n");
        let new = profile("new", "a;parse 10\na;plan 30\na;read 20\na;write 40\n");
        let told = Functions::of(Role::Server, &[&old, &new], 2).to_string();
        let row = |name: &str| {
            let line = told.lines().find(|line| line.ends_with(name)).unwrap();
            line.split_whitespace().collect::<Vec<_>>().join(" ")
        };
        assert_eq!(row("parse"), "1 50.0 % 4 10.0 % -40.0 parse");
        assert_eq!(row("plan"), "2 30.0 % 2 30.0 % +0.0 plan");
        assert_eq!(row("write"), "- 1 40.0 % write");
        assert!(Functions::of(Role::Clients, &[&old], 2).is_empty());
        let locks = profile("locks", "a;commit;RawMutex::lock_slow 30\na;plan 70\n");
        let told = Locks::of(Role::Server, &locks, 5).to_string();
        assert!(
            told.ends_with("         300   30.0 %  commit, in RawMutex::lock_slow\n"),
            "{told}"
        );
        let told = Locks::of(Role::Server, &old, 5).to_string();
        assert!(told.ends_with("in no sample\n"), "{told}");
        let told = Sites::waits(Role::Server, &old, 1).to_string();
        assert!(told.ends_with("         500  parse\n"), "{told}");
    }
}
