//! The optimizer traces that a session keeps (MySQL 8.4 manual, 10.15).

/// What `information_schema.OPTIMIZER_TRACE` shows of a statement.
#[derive(Clone, Debug, Default)]
pub struct StatementTrace {
    /// The statement's text.
    pub query: String,
    /// What the planner told, as JSON; empty where the session may not know it.
    pub trace: String,
    /// How many bytes more there would have been.
    pub missing_bytes: usize,
    /// The session may not see what the statement uses.
    pub insufficient_privileges: bool,
}

/// Which traces are kept, and where.
#[derive(Clone, Debug)]
pub struct OptimizerTraces {
    /// `optimizer_trace`: statements are traced.
    pub is_enabled: bool,
    /// `optimizer_trace`: without line breaks.
    pub is_one_line: bool,
    /// `optimizer_trace_features`: orders of tables.
    pub search: bool,
    /// `optimizer_trace_features`: ways to tables' rows.
    pub access: bool,
    /// `optimizer_trace_max_mem_size`, in bytes.
    pub bytes_max: usize,
    /// `optimizer_trace_offset`: the first that is kept; a negative one counts from the last.
    pub offset: i64,
    /// `optimizer_trace_limit`: how many are kept.
    pub limit: usize,
    kept: Vec<StatementTrace>,
    /// How many statements were traced.
    traced: i64,
}

impl Default for OptimizerTraces {
    /// The variables' defaults.
    fn default() -> OptimizerTraces {
        OptimizerTraces {
            is_enabled: false,
            is_one_line: false,
            search: true,
            access: true,
            bytes_max: 1 << 20,
            offset: -1,
            limit: 1,
            kept: Vec::new(),
            traced: 0,
        }
    }
}

impl OptimizerTraces {
    /// The settings, without any trace.
    pub fn without_traces(&self) -> OptimizerTraces {
        OptimizerTraces {
            kept: Vec::new(),
            traced: 0,
            ..*self
        }
    }

    /// Drops all: a variable that says which to keep was set.
    pub fn clear(&mut self) {
        *self = self.without_traces();
    }

    /// Keeps the trace of a statement, if it is one of those to be kept.
    pub fn add(&mut self, trace: StatementTrace) {
        self.traced += 1;
        if self.offset >= 0 {
            if self.traced > self.offset && self.kept.len() < self.limit {
                self.kept.push(trace);
            }
            return;
        }
        self.kept.push(trace);
        let most = usize::try_from(self.offset.unsigned_abs()).unwrap_or(usize::MAX);
        if self.kept.len() > most {
            self.kept.remove(0);
        }
    }

    /// Those to be shown, the oldest first.
    pub fn shown(&self) -> &[StatementTrace] {
        &self.kept[..self.kept.len().min(self.limit)]
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn shown(offset: i64, limit: usize) -> Vec<String> {
        let mut traces = OptimizerTraces {
            offset,
            limit,
            ..OptimizerTraces::default()
        };
        for query in ["a", "b", "c", "d"] {
            traces.add(StatementTrace {
                query: query.to_string(),
                ..StatementTrace::default()
            });
        }
        let shown = traces.shown().iter();
        shown.map(|trace| trace.query.clone()).collect()
    }

    #[test]
    fn offset_and_limit_say_which_are_kept() {
        assert_eq!(shown(-1, 1), ["d"]);
        assert_eq!(shown(-3, 2), ["b", "c"]);
        assert_eq!(shown(0, 2), ["a", "b"]);
        assert_eq!(shown(2, 5), ["c", "d"]);
        assert!(shown(-1, 0).is_empty());
    }
}
