//! Fault injection for tests, passed to each actor in its arguments: no global, no environment variable.

use std::fmt;
use std::sync::Arc;

/// Called by an actor at named points; a test's hook may panic there. The default does nothing.
///
/// Points are `"<actor>.<message>"` in snake case at the start of each message (`session.submit`,
/// `tool_executor.proceed`), and `"session.committed.<n>"` after the n-th commit that a Session saw.
#[derive(Clone, Default)]
pub struct FaultSwitch(Option<Hook>);

/// What a test installs.
type Hook = Arc<dyn Fn(&str) + Send + Sync>;

impl FaultSwitch {
    /// A switch that calls `hook` at each point.
    pub fn new(hook: impl Fn(&str) + Send + Sync + 'static) -> Self {
        Self(Some(Arc::new(hook)))
    }

    /// Says that `point` was reached; may panic, by the will of a test.
    pub fn hit(&self, point: &str) {
        if let Some(hook) = &self.0 {
            hook(point);
        }
    }

    /// True when a test installed a hook; lets callers skip building a point's name.
    #[must_use]
    pub fn is_armed(&self) -> bool {
        self.0.is_some()
    }
}

impl fmt::Debug for FaultSwitch {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(if self.is_armed() {
            "FaultSwitch(armed)"
        } else {
            "FaultSwitch(off)"
        })
    }
}
