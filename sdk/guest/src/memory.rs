//! What a policy allocates from. Rust's own allocator asks the host for pages at its first
//! allocation, and the host then changes the protection of memory, twice for each evaluation in a
//! fresh instance. This one first uses what the module begins with beyond its data (how much that
//! is, `opensdn-policy-build` passes to the linker) and asks only then.

use core::{alloc::Layout, arch::wasm32, ptr::NonNull};

use talc::{
    base::{Talc, binning::Binning},
    cell::TalcSyncCell,
    source::Source,
    wasm::WasmBinning,
};

const PAGE: usize = 64 * 1024;
/// More than what the allocator's notes take of a heap.
const NOTES: usize = 4 * 1024;

#[global_allocator]
static ALLOCATOR: TalcSyncCell<Pages, WasmBinning> = TalcSyncCell::new_wasm(Pages { end: None });

#[allow(unsafe_code, reason = "a symbol of the linker")]
unsafe extern "C" {
    /// Where the module's data ends.
    safe static __heap_base: u8;
}

/// One heap from the module's data to the end of the memory.
#[derive(Debug)]
struct Pages {
    /// Where it ends, once there is one.
    end: Option<NonNull<u8>>,
}

// SAFETY: allocates nothing itself.
#[allow(unsafe_code, reason = "an allocator works on raw memory")]
unsafe impl Source for Pages {
    fn acquire<B: Binning>(talc: &mut Talc<Self, B>, layout: Layout) -> Result<(), ()> {
        let size = wasm32::memory_size::<0>() * PAGE;
        if talc.source.end.is_none() {
            let start = (&raw const __heap_base).cast_mut();
            // SAFETY: the linker puts nothing there.
            talc.source.end = unsafe { talc.claim(start, size - start as usize) };
            if talc.source.end.is_some() {
                return Ok(());
            }
        }
        let pages = (layout.size() + layout.align() + NOTES).div_ceil(PAGE);
        if wasm32::memory_grow::<0>(pages) == usize::MAX {
            return Err(());
        }
        if let Some(end) = talc.source.end {
            // SAFETY: the pages are new and right behind the heap: nothing else grows the memory.
            talc.source.end = Some(unsafe { talc.extend(end, (size + pages * PAGE) as *mut u8) });
        }
        Ok(())
    }
}
