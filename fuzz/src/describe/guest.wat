;; A policy whose description is the input: its memory from 1000 on, where `describe` says that the
;; metadata stand. The bytes there are put in place of the marks in the component's own.
(module
  (memory (export "memory") 1)
  (global $next (mut i32) (i32.const 16384))
  (data (i32.const 1000) "INPUT")
  (func (export "cabi_realloc") (param i32 i32 i32 i32) (result i32)
    (local $at i32)
    (local.set $at (i32.and (i32.add (global.get $next) (i32.const 7)) (i32.const -8)))
    (global.set $next (i32.add (local.get $at) (local.get 3)))
    (local.get $at))
  (func (export "describe") (result i32) (i32.const 1000))
  (func (export "mutate") (param i32) (result i32) (i32.const 8000))
  (func (export "validate") (param i32) (result i32) (i32.const 8000)))
