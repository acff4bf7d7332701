//! How much memory a piece of code takes at most, for tests of what a sender can make us hold.

#![allow(unsafe_code, reason = "an allocator is unsafe by its trait; this one only counts")]

use std::alloc::{GlobalAlloc, Layout, System};
use std::cell::Cell;

thread_local! {
    static NOW: Cell<usize> = const { Cell::new(0) };
    static MOST: Cell<usize> = const { Cell::new(0) };
}

struct Counting;

fn count(taken: usize, given_back: usize) {
    // While a thread ends, its counters are gone and nothing asks for them.
    let _ = NOW.try_with(|now| {
        now.set(now.get().saturating_add(taken).saturating_sub(given_back));
        let _ = MOST.try_with(|most| most.set(most.get().max(now.get())));
    });
}

// SAFETY: every call is the system allocator's own.
unsafe impl GlobalAlloc for Counting {
    unsafe fn alloc(&self, layout: Layout) -> *mut u8 {
        count(layout.size(), 0);
        // SAFETY: as the caller promises.
        unsafe { System.alloc(layout) }
    }

    unsafe fn dealloc(&self, pointer: *mut u8, layout: Layout) {
        count(0, layout.size());
        // SAFETY: as the caller promises.
        unsafe { System.dealloc(pointer, layout) }
    }
}

#[global_allocator]
static ALLOCATOR: Counting = Counting;

/// The most that this thread has at any time more than at the start of `work`.
pub(super) async fn most<T>(work: impl Future<Output = T>) -> (T, usize) {
    let before = NOW.get();
    MOST.set(before);
    let result = work.await;
    (result, MOST.get().saturating_sub(before))
}
