//! TPC-H as a scenario: each client asks the 22 queries of [`queries`](crate::queries), one after
//! the other, in an order of its own, again and again.
//!
//! A transaction is a query, and each query a kind of its own. As queries take very different times,
//! a client is measured until it has asked all of them. After a run every query is asked once more,
//! and its answer has to be that of the other servers.

use std::sync::Arc;
use std::time::Duration;

use fastrand::Rng;
use porpoise_client::{Connection, Error};

use crate::Measured;
use crate::queries::{Query, Suite, Tpch, fill_suite};
use crate::scenario::Scenario;
use crate::workload::{Course, Filled};

/// TPC-H at a scale.
pub(crate) struct TpchQueries {
    suite: Tpch,
    queries: Vec<Query>,
    database: String,
}

impl TpchQueries {
    pub(crate) fn new(scale: f64, database: String, seed: u64) -> Self {
        let suite = Tpch::new(scale, seed);
        Self {
            queries: suite.queries(),
            suite,
            database,
        }
    }
}

impl Scenario for TpchQueries {
    fn database(&self) -> Option<&str> {
        Some(&self.database)
    }

    fn load(
        &self,
        connection: &mut Connection,
        _seed: u64,
        show: &mut dyn FnMut(&str),
    ) -> Result<(), Error> {
        // Those that refer to others come last, and go first.
        let names: Vec<&str> = self.suite.tables().iter().map(|table| table.name).collect();
        for name in names.iter().rev() {
            connection.run(format!("DROP TABLE IF EXISTS {name}"))?;
        }
        fill_suite(connection, &self.suite, show)
    }

    fn statements(&self) -> Vec<String> {
        self.queries
            .iter()
            .map(|query| query.text.clone())
            .collect()
    }

    fn to_prepare(&self) -> Vec<usize> {
        Vec::new()
    }

    fn kinds(&self) -> Vec<String> {
        let name = |query: &Query| format!("query {}", query.name);
        self.queries.iter().map(name).collect()
    }

    fn course(self: Arc<Self>, _: usize) -> Box<dyn Course> {
        Box::new(Stream {
            of: self,
            left: Vec::new(),
            query: 0,
            is_sent: false,
        })
    }

    /// One that is under way when measuring begins doesn't count.
    fn transactions_min(&self) -> u64 {
        self.queries.len() as u64 + 1
    }

    fn compared(&self) -> Vec<Query> {
        self.queries.clone()
    }

    fn figures(&self, measured: &Measured) -> Vec<(String, f64)> {
        let means = measured.kinds.iter().map(|kind| kind.latencies.mean());
        let logs = means
            .map(|mean| (mean.as_secs_f64() * 1e3).ln())
            .sum::<f64>();
        let geometric = (logs / measured.kinds.len() as f64).exp();
        vec![("geometric mean of the queries, ms".to_owned(), geometric)]
    }
}

/// A client's way through the queries.
struct Stream {
    of: Arc<TpchQueries>,
    /// Of this pass.
    left: Vec<usize>,
    query: usize,
    is_sent: bool,
}

impl Course for Stream {
    fn begin(&mut self, random: &mut Rng) -> Duration {
        if self.left.is_empty() {
            self.left = (0..self.of.queries.len()).collect();
            random.shuffle(&mut self.left);
        }
        self.query = self.left.pop().unwrap_or_default();
        self.is_sent = false;
        Duration::ZERO
    }

    fn next(&mut self, _: &mut Rng, _: &mut Vec<Filled>) -> Option<usize> {
        let is_next = !self.is_sent;
        self.is_sent = true;
        is_next.then_some(self.query)
    }

    fn text(&self) -> Option<&str> {
        Some(&self.of.queries[self.query].text)
    }

    fn kind(&self) -> usize {
        self.query
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::collections::BTreeSet;

    #[test]
    fn every_pass_has_each_query_once() {
        let scenario = Arc::new(TpchQueries::new(0.001, "tpch".into(), 1));
        let mut course = scenario.course(0);
        let random = &mut Rng::with_seed(1);
        let mut orders = BTreeSet::new();
        for _ in 0..3 {
            let pass: Vec<usize> = std::iter::repeat_with(|| {
                course.begin(random);
                let query = course.next(random, &mut Vec::new()).unwrap();
                assert_eq!(course.next(random, &mut Vec::new()), None);
                query
            })
            .take(22)
            .collect();
            assert_eq!(pass.iter().collect::<BTreeSet<_>>().len(), 22);
            orders.insert(pass);
        }
        assert_eq!(orders.len(), 3);
    }
}
