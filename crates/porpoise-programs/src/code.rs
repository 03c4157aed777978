//! The compiled form of a program.

use std::borrow::Cow;
use std::sync::atomic::AtomicBool;
use std::sync::{Arc, OnceLock};

use arc_swap::ArcSwapOption;
use compact_str::CompactString;
use porpoise_catalog::program_statistics::ProgramStatistics;
use porpoise_catalog::{Column, ColumnDefault};
use porpoise_core::variables::SessionVars;
use porpoise_expr::Expr;
use porpoise_mdl::command_counts::CountedCommand;
use porpoise_planner::ProgramUses;
use porpoise_planner::plan::{Node, Plan, PlanKind, Target};
use porpoise_session::plan_cache::CachedPlan;
use porpoise_sql::ast;
use porpoise_types::DataType;

use crate::Scope;

/// A program, ready to run any number of times.
#[derive(Debug)]
pub struct Program {
    /// The text that spans point into.
    pub sql: Arc<[u8]>,
    /// What it does.
    pub code: Vec<Instruction>,
    /// The handlers that are in force at each instruction: a position in `handler_scopes`.
    pub scopes: Vec<usize>,
    /// The blocks that declare handlers; the first one has none and stands for the whole program.
    pub handler_scopes: Vec<HandlerScope>,
    /// The variables, parameters first, as columns: a value is assigned as a column takes it.
    pub slots: Vec<Column>,
    /// Which way each parameter's value goes.
    pub parameters: Vec<ast::ParameterMode>,
    /// How many cursors there are.
    pub cursors: usize,
    /// The texts of its SQL statements, cursors' queries, CALLs, and expressions that read tables, as
    /// they are numbered.
    pub statements: Vec<ast::Span>,
    /// What a function returns.
    pub returns: Option<Column>,
    /// Which slots hold columns of a trigger's rows.
    pub row_slots: Vec<RowSlot>,
    /// It may change the session's variables.
    pub sets_variables: bool,
    /// It is a trigger's.
    pub is_trigger: bool,
    /// What its runs take is added here.
    pub statistics: Arc<ProgramStatistics>,
    /// What its statements use, once that was asked for.
    pub uses: OnceLock<Arc<ProgramUses>>,
}

impl Program {
    /// Whether it may send rows to the client: it has a query whose rows go nowhere else.
    pub fn sends_rows(&self) -> bool {
        self.code.iter().any(|instruction| match instruction {
            Instruction::Sql(sql) => sql.sends_rows(),
            _ => false,
        })
    }

    /// The line that a statement begins on, from 1, and its text.
    pub fn source(&self, number: usize) -> (usize, Cow<'_, str>) {
        let span = self.statements.get(number).copied().unwrap_or_default();
        let before = self.sql.iter().take(span.start as usize);
        let line = 1 + before.filter(|byte| **byte == b'\n').count();
        (line, String::from_utf8_lossy(span.of(&self.sql)))
    }

    /// Whether it runs within a statement, as functions and triggers do.
    pub fn runs_within_statement(&self) -> bool {
        self.is_trigger || self.returns.is_some()
    }

    /// Whether a scope is another one, or within it.
    pub(crate) fn is_within(&self, mut inner: usize, outer: usize) -> bool {
        while inner != outer {
            match self.handler_scopes[inner].parent {
                Some(parent) => inner = parent,
                None => return false,
            }
        }
        true
    }
}

impl SqlStatement {
    fn sends_rows(&self) -> bool {
        match &self.statement {
            ast::Statement::Query(query) => query.into.is_none(),
            ast::Statement::Show(_)
            | ast::Statement::Describe { .. }
            | ast::Statement::Explain(_)
            | ast::Statement::Execute { .. } => true,
            _ => false,
        }
    }

    /// Whether it shows the conditions of the statement before it.
    pub fn is_about_diagnostics(&self) -> bool {
        matches!(
            &self.statement,
            ast::Statement::Show(show)
                if matches!(
                    show.what,
                    ast::ShowWhat::Warnings { .. } | ast::ShowWhat::Errors { .. }
                )
        )
    }
}

impl HandlerScope {
    /// Whether nothing is handled here, nor around it.
    pub(crate) fn is_void(&self) -> bool {
        self.parent.is_none() && self.handlers.is_empty()
    }
}

/// A column of a trigger's row.
#[derive(Clone, Copy, Debug)]
pub struct RowSlot {
    /// Of OLD; else of NEW.
    pub is_old: bool,
    /// The column's position in the table.
    pub column: usize,
    /// Where the program has it.
    pub slot: usize,
    /// The program may give it a value.
    pub is_assigned: bool,
    /// How often the program names it, other than to give it a value.
    pub reads: usize,
}

/// One step of a program.
#[derive(Debug)]
pub enum Instruction {
    /// `slot := value`.
    Assign {
        /// Where it goes.
        slot: usize,
        /// What is assigned.
        value: Expression,
    },
    /// `slot := value`, without a conversion: CASE's operand.
    Keep {
        /// Where it goes.
        slot: usize,
        /// What is kept.
        value: Expression,
        /// Where a CONTINUE handler goes on if the operand can't be evaluated: behind the whole
        /// statement.
        resume: usize,
    },
    /// `slot := NULL`: a variable without DEFAULT is declared.
    Clear(usize),
    /// `@name := value`.
    AssignUser {
        /// In lower case.
        name: CompactString,
        /// What is assigned.
        value: Expression,
    },
    /// Goes on elsewhere.
    Jump(usize),
    /// Goes on elsewhere unless the condition holds.
    JumpUnless {
        /// What must hold.
        condition: Expression,
        /// Where to go on if it doesn't.
        target: usize,
        /// Where a CONTINUE handler goes on if the condition can't be evaluated: behind the whole
        /// statement.
        resume: usize,
    },
    /// A SQL statement.
    Sql(Box<SqlStatement>),
    /// CALL.
    Call(Box<CallStatement>),
    /// SIGNAL, RESIGNAL.
    Signal(Box<Signal>),
    /// GET DIAGNOSTICS.
    Diagnose(Box<Diagnose>),
    /// A CASE without ELSE of which no arm fits (1339).
    CaseNotFound,
    /// OPEN.
    Open {
        /// Which.
        cursor: usize,
        /// Its query.
        query: Arc<SqlStatement>,
    },
    /// FETCH.
    Fetch {
        /// From which.
        cursor: usize,
        /// Where the columns go.
        into: Vec<Target>,
    },
    /// CLOSE.
    Close(usize),
    /// The block that declares these cursors begins or ends: they are closed, open or not.
    Forget(std::ops::Range<usize>),
    /// A handler's body has ended. With a target the handler leaves its block; otherwise the
    /// program goes on behind what the condition came from.
    EndHandler(Option<usize>),
    /// RETURN.
    Return(Expression),
}

/// An expression of a program.
#[derive(Debug)]
pub struct Expression {
    /// As it was written.
    pub written: ast::Expr,
    /// Bound once. `None` where it has to be planned as a query, or can't be bound now.
    pub bound: Option<Expr>,
    /// Its place among the program's statements, if it reads tables.
    pub number: Option<usize>,
    /// Its plan, if it isn't bound and has been evaluated.
    pub planned: Planned,
    /// The variables that it may name.
    pub scope: Arc<Scope>,
}

/// A SQL statement of a program.
#[derive(Debug)]
pub struct SqlStatement {
    /// The statement. A cursor's is its query.
    pub statement: ast::Statement,
    /// Whether the program takes the rows itself.
    pub is_cursor: bool,
    /// The variables that it may name.
    pub scope: Arc<Scope>,
    /// Its own text.
    pub span: ast::Span,
    /// Its place among the program's statements.
    pub number: usize,
    /// Where the columns of `SELECT … INTO` go that are the program's variables.
    pub into: Vec<usize>,
    /// Its plan, once it has run.
    pub planned: Planned,
}

/// A statement's plan, kept while the catalog stands.
#[derive(Debug, Default)]
pub struct Planned(pub ArcSwapOption<KeptPlan>);

/// A plan, and the settings that it was made for.
#[derive(Debug)]
pub struct KeptPlan {
    /// The hash of what planning depends on beside the statement and the catalog.
    pub context_hash: u64,
    /// The plan.
    pub cached: CachedPlan,
    /// The expression that the plan evaluates, where it does nothing else.
    pub value: Option<Expr>,
}

impl KeptPlan {
    /// Keeps a plan that was made for `context_hash` while the catalog had the given version.
    pub fn new(
        context_hash: u64,
        catalog_version: u64,
        plan: Plan,
        command: Option<CountedCommand>,
    ) -> KeptPlan {
        KeptPlan {
            context_hash,
            value: value_of(&plan).cloned(),
            cached: CachedPlan {
                text_lengths: Box::default(),
                plan,
                command,
                catalog_version,
                sql: Box::default(),
                source: None,
                mask: None,
                is_retired: AtomicBool::new(false),
            },
        }
    }

    /// Whether the plan is still right.
    pub fn fits(&self, context_hash: u64, catalog_version: u64, session: &SessionVars) -> bool {
        self.context_hash == context_hash
            && self.cached.is_good(catalog_version)
            && self.cached.plan.fits_user_variables(session)
    }
}

/// The only expression of a query that reads no rows, runs no programs and may be kept.
pub(crate) fn value_of(plan: &Plan) -> Option<&Expr> {
    let is_value = plan.cacheable
        && plan.tables.is_empty()
        && plan.subplans.is_empty()
        && plan.routines.is_empty();
    match &plan.kind {
        PlanKind::Query(query) if is_value && matches!(query.node, Node::One) => {
            match &*query.output {
                [value] => Some(value),
                _ => None,
            }
        }
        _ => None,
    }
}

/// `CALL name(arguments)`.
#[derive(Debug)]
pub struct CallStatement {
    /// The procedure.
    pub name: ast::ObjectName,
    /// What it is given.
    pub arguments: Vec<Argument>,
    /// Its place among the program's statements.
    pub number: usize,
}

/// An argument of CALL.
#[derive(Debug)]
pub struct Argument {
    /// What is given.
    pub value: Expression,
    /// Where the value of an OUT or INOUT parameter goes; `None` if nothing can be assigned.
    pub target: Option<ArgumentTarget>,
}

/// Where the value of an OUT or INOUT parameter goes.
#[derive(Debug)]
pub enum ArgumentTarget {
    /// Into a variable.
    Variable(Target),
    /// To whoever executes the prepared statement: the value of a placeholder, by its number.
    Placeholder(usize),
}

/// SIGNAL and RESIGNAL.
#[derive(Debug)]
pub struct Signal {
    /// RESIGNAL.
    pub is_resignal: bool,
    /// The number and SQLSTATE that are raised. RESIGNAL may have none.
    pub condition: Option<Matched>,
    /// `SET item = value`.
    pub items: Vec<(ast::SignalItem, Expression)>,
}

/// GET DIAGNOSTICS.
#[derive(Debug)]
pub struct Diagnose {
    /// STACKED.
    pub is_stacked: bool,
    /// What is asked.
    pub what: Asked,
}

/// What GET DIAGNOSTICS asks, and where it goes.
#[derive(Debug)]
pub enum Asked {
    /// Of the statement.
    Statement(Vec<(Target, ast::StatementItem)>),
    /// Of a condition.
    Condition {
        /// Which, from 1.
        number: Expression,
        /// What goes where.
        items: Vec<(Target, ast::ConditionItem)>,
    },
}

/// What a handler or SIGNAL names.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Matched {
    /// An error's number.
    Number(u16),
    /// A SQLSTATE.
    SqlState([u8; 5]),
    /// SQLSTATEs of class 01.
    Warning,
    /// Class 02.
    NotFound,
    /// All other classes but 00.
    Exception,
}

/// A block that declares handlers.
#[derive(Debug, Default)]
pub struct HandlerScope {
    /// The next enclosing one.
    pub parent: Option<usize>,
    /// What the block declares.
    pub handlers: Vec<Handler>,
    /// A block whose handlers aren't declared yet, as its variables are: what they will take, no
    /// handler around the block does.
    pub hides: Option<usize>,
}

/// A handler.
#[derive(Debug)]
pub struct Handler {
    /// What it handles.
    pub conditions: Vec<Matched>,
    /// CONTINUE, else EXIT.
    pub continues: bool,
    /// Where its body begins.
    pub target: usize,
}

/// A variable of a program as a column, which values are converted for.
pub fn slot(name: &str, ty: DataType) -> Column {
    Column {
        name: name.into(),
        ty,
        explicit_collation: false,
        nullable: true,
        default: ColumnDefault::None,
        on_update_now: false,
        auto_increment: false,
        generated: None,
        visible: true,
        hidden: false,
        comment: String::new(),
        added: None,
        place: 0,
    }
}
