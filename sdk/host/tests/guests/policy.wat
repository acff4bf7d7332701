;; A policy by hand: it is about the kind Thing, knows the message X1, and does in `validate`,
;; `describe` and its start function what a test puts in place of the marks, with data of its own.
(module
  (import "opensdn:policy/cluster@1.0.0" "find"
    (func $find (param i32 i32 i32 i32 i32)))
  (import "opensdn:policy/cluster@1.0.0" "find-first"
    (func $find_first (param i32 i32 i32 i32 i32 i32)))
  (memory (export "memory") 2)
  (global $next (mut i32) (i32.const 8192))

  (data (i32.const 100) "hostile")
  (data (i32.const 110) "1")
  (data (i32.const 120) "Thing")
  (data (i32.const 130) "{}")
  (data (i32.const 140) "X1")
  (data (i32.const 150) "\00\01\02")             ;; create, update, delete
  (data (i32.const 160) "undeclared")

  ;; metadata: name, version, summary, interests, indexes, messages, settings schema, claims
  (data (i32.const 1000)
    "\64\00\00\00\07\00\00\00" "\6e\00\00\00\01\00\00\00" "\00\00\00\00\00\00\00\00"
    "\4c\04\00\00\01\00\00\00" "\00\00\00\00\00\00\00\00" "\b0\04\00\00\01\00\00\00"
    "\82\00\00\00\02\00\00\00" "\00")
  ;; interest: step validate, group "", kind, operations, reads
  (data (i32.const 1100)
    "\01\00\00\00" "\00\00\00\00\00\00\00\00" "\78\00\00\00\05\00\00\00"
    "\96\00\00\00\03\00\00\00" "\14\05\00\00\01\00\00\00")
  ;; message: code, severity, title, explanation, hint
  (data (i32.const 1200)
    "\8c\00\00\00\02\00\00\00" "\00\00\00\00" "\00\00\00\00\00\00\00\00"
    "\00\00\00\00\00\00\00\00" "\00\00\00\00\00\00\00\00")
  ;; reads: one pointer, ""
  (data (i32.const 1300) "\00\00\00\00\00\00\00\00")
  ;; at 2000 stands the result of `validate`: no findings, no claims
  (; DATA ;)

  (func $cabi_realloc (export "cabi_realloc") (param i32 i32 i32 i32) (result i32)
    (local $at i32)
    (local.set $at (i32.and (i32.add (global.get $next) (i32.const 7)) (i32.const -8)))
    (global.set $next (i32.add (local.get $at) (local.get 3)))
    (local.get $at))

  (func $recurse (param i64) (result i64)
    (i64.add (i64.const 1) (call $recurse (i64.add (local.get 0) (i64.const 1)))))

  (func $start (; START ;))
  (start $start)

  (func (export "describe") (result i32)
    (; DESCRIBE ;)
    (i32.const 1000))
  (func (export "mutate") (param i32) (result i32) (i32.const 2000))
  (func (export "validate") (param i32) (result i32)
    (; VALIDATE ;)
    (i32.const 2000)))
