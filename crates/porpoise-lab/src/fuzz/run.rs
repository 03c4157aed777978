//! The course of a run: each way in is asked, what ends the server is looked for, what was found is
//! made smaller.

use std::collections::BTreeMap;
use std::sync::atomic::Ordering::Relaxed;
use std::time::{Duration, Instant};

use super::asker::{Recipe, Statements, Trial, VARIANTS};
use super::course::Course;
use super::findings::{self, Findings, Found};
use super::reply::Fault;
use super::shrink::shrunk;
use super::subject::Subject;
use super::{Again, FuzzFinding, FuzzPlan, FuzzReport, chart};
use crate::{Error, Way};

/// How long a statement is made smaller: each try may cost a server, or a statement's time.
const SHRINK_MAX: Duration = Duration::from_secs(180);
/// Servers that a run may cost: more are no news.
const CRASHES_MAX: u32 = 200;
/// Statements that a finding names as those that were under way.
const SUSPECTS_SHOWN: usize = 8;

fn statements_of(plan: &FuzzPlan) -> Result<Statements, Error> {
    let statements = Statements::of(Recipe {
        seed: plan.seed,
        depth: plan.depth,
        functions: plan.functions.clone(),
        threads: plan.threads,
        ahead: plan.ahead,
        oracle: plan.oracle.clone(),
    });
    match statements.is_empty() {
        true => Err(Error::Plan(format!(
            "no function's name holds {}",
            plan.functions.join(", ")
        ))),
        false => Ok(statements),
    }
}

/// The statement of a number, as SQL. Fails if the plan has no functions.
pub fn statement_of(plan: &FuzzPlan, number: u64) -> Result<String, Error> {
    Ok(statements_of(plan)?.numbered(number).sql())
}

/// Runs a plan.
pub fn run(plan: &FuzzPlan) -> Result<FuzzReport, Error> {
    let statements = statements_of(plan)?;
    crate::make_folder(&plan.folder)?;
    let mut report = FuzzReport::default();
    for &way in &plan.ways {
        if plan.stop.load(Relaxed) {
            break;
        }
        over(plan, &statements, way, &mut report)?;
        chart::write(plan, &report)?;
    }
    Ok(report)
}

/// Tries all statements over a way in.
fn over(
    plan: &FuzzPlan,
    statements: &Statements,
    way: Way,
    report: &mut FuzzReport,
) -> Result<(), Error> {
    let mut subject = Subject::start(plan, way, statements)?;
    let mut course = Course::new(plan, way);
    let findings = Findings::new(statements);
    let end = (plan.first + plan.statements).div_ceil(VARIANTS);
    let mut shapes = plan.first / VARIANTS..end;
    let mut crashes = 0;
    while !shapes.is_empty() && !course.is_over() && crashes < CRASHES_MAX {
        let found = |number, fault| findings.keep(number, fault);
        let (asked, fault) = subject.ask(shapes.clone(), &found, &mut |pid, counts| {
            course.look(pid, counts, &findings)
        })?;
        course.add(asked.counts);
        shapes.start = asked.next.max(shapes.start);
        if let Some(fault) = fault {
            crashes += 1;
            blame(&mut subject, &mut course, &findings, &asked.suspects, fault)?;
        } else {
            break;
        }
    }
    report.ways.push(course.report());
    let smaller = Smaller {
        plan,
        statements,
        way,
    };
    smaller.make(&mut subject, &mut course, findings.into_all(), report)
}

/// The server has ended: looks which of the statements that were under way ends it.
fn blame(
    subject: &mut Subject<'_>,
    course: &mut Course<'_>,
    findings: &Findings<'_>,
    suspects: &[u64],
    fault: Fault,
) -> Result<(), Error> {
    let mut is_known = false;
    for &number in suspects {
        if course.is_ended() {
            break;
        }
        let trial = Trial::of(&findings.statement(number));
        let own = subject.attempt(&trial, &mut |pid, _| course.look_aside(pid))?;
        if let Some(own) = own {
            is_known |= own.kind() == fault.kind();
            findings.keep(number, own);
        }
    }
    if is_known {
        return Ok(());
    }
    // None does it alone: what is known is all that there is to tell.
    let shown: Vec<String> = suspects.iter().map(u64::to_string).collect();
    let shown = shown[..shown.len().min(SUSPECTS_SHOWN)].join(", ");
    let among = |why: String| {
        format!(
            "{why}; of none alone of {} statements: {shown}",
            suspects.len()
        )
    };
    let fault = match fault {
        Fault::Crash(why) => Fault::Crash(among(why)),
        Fault::Memory(why) => Fault::Memory(among(why)),
        fault => fault,
    };
    findings.keep(suspects.first().copied().unwrap_or_default(), fault);
    Ok(())
}

/// Makes what was found smaller.
struct Smaller<'p> {
    plan: &'p FuzzPlan,
    statements: &'p Statements,
    way: Way,
}

impl Smaller<'_> {
    /// Makes all smaller, drops what then is the same, and writes the rest to files. A run that is
    /// ended meanwhile has them written as they are.
    fn make(
        &self,
        subject: &mut Subject<'_>,
        course: &mut Course<'_>,
        found: Vec<Found>,
        report: &mut FuzzReport,
    ) -> Result<(), Error> {
        let mut known: BTreeMap<(&'static str, String), usize> = BTreeMap::new();
        let count = found.len();
        for (at, found) in found.into_iter().enumerate() {
            course.tell(&format!("making finding {} of {count} smaller", at + 1));
            let statement = self.statements.numbered(found.number);
            let (mut failure, deadline) = (None, Instant::now() + SHRINK_MAX);
            let again = match course.is_ended() {
                true => Again::NotAsked,
                false => {
                    let trial = Trial::of(&statement);
                    let fault = subject.attempt(&trial, &mut |pid, _| course.look_aside(pid))?;
                    match fault.is_some_and(|fault| fault.is_like(&found.fault)) {
                        true => Again::Fails,
                        false => Again::Passes,
                    }
                }
            };
            let (smallest, fault) = shrunk(&statement, &found.fault, |candidate| {
                if failure.is_some() || course.is_ended() || Instant::now() > deadline {
                    return None;
                }
                let trial = Trial::of(candidate);
                subject
                    .attempt(&trial, &mut |pid, _| course.look_aside(pid))
                    .unwrap_or_else(|error| {
                        failure = Some(error);
                        None
                    })
            });
            if let Some(error) = failure {
                let sql = statement.sql();
                return Err(Error::Plan(format!(
                    "statement {}: {sql}: {error}",
                    found.number
                )));
            }
            let key = (fault.kind(), smallest.names().join(" "));
            if let Some(&at) = known.get(&key) {
                report.findings[at].times += found.times;
                continue;
            }
            known.insert(key, report.findings.len());
            let name = format!("finding-{:03}.sql", report.findings.len() + 1);
            let finding = FuzzFinding {
                way: self.way,
                number: found.number,
                sql: smallest.sql(),
                original: statement.sql(),
                fault,
                again,
                times: found.times,
                file: self.plan.folder.join(name),
            };
            findings::write(&finding, self.plan, &Trial::of(&smallest).primers)?;
            report.findings.push(finding);
        }
        course.report();
        Ok(())
    }
}
