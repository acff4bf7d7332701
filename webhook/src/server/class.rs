//! Which kinds a review is about, as its path says: a part of what all requests share is kept for those of our own
//! groups, which are refused when nobody judges them, so that a busy policy about others cannot take it all.

/// About which kinds.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Class {
    /// Those of our own groups.
    Ours,
    /// Any other.
    Others,
}

impl Class {
    /// How much of something that all share a class may have.
    pub(super) fn share(self, all: usize) -> usize {
        match self {
            Self::Ours => all,
            Self::Others => all - all / 4,
        }
    }

    /// What its paths begin with has this behind the step.
    pub(crate) fn suffix(self) -> &'static str {
        match self {
            Self::Ours => "",
            Self::Others => "-others",
        }
    }
}
