;; A policy whose answers are its settings: hexadecimal digits that it decodes to its memory at
;; 2000, where its result stands. It is about the kind Thing, knows the message X1, and may claim.
(module
  (memory (export "memory") 1)
  (global $next (mut i32) (i32.const 16384))

  (data (i32.const 100) "echo")
  (data (i32.const 110) "1")
  (data (i32.const 120) "Thing")
  (data (i32.const 130) "{}")
  (data (i32.const 140) "X1")
  (data (i32.const 150) "\00")                     ;; create

  ;; metadata: name, version, summary, interests, indexes, messages, settings schema, claims
  (data (i32.const 1000)
    "\64\00\00\00\04\00\00\00" "\6e\00\00\00\01\00\00\00" "\00\00\00\00\00\00\00\00"
    "\4c\04\00\00\02\00\00\00" "\00\00\00\00\00\00\00\00" "\b0\04\00\00\01\00\00\00"
    "\82\00\00\00\02\00\00\00" "\01")
  ;; two interests: step, group "", kind, operations, reads
  (data (i32.const 1100)
    "\00\00\00\00" "\00\00\00\00\00\00\00\00" "\78\00\00\00\05\00\00\00"
    "\96\00\00\00\01\00\00\00" "\14\05\00\00\01\00\00\00"
    "\01\00\00\00" "\00\00\00\00\00\00\00\00" "\78\00\00\00\05\00\00\00"
    "\96\00\00\00\01\00\00\00" "\14\05\00\00\01\00\00\00")
  ;; message: code, severity, title, explanation, hint
  (data (i32.const 1200)
    "\8c\00\00\00\02\00\00\00" "\00\00\00\00" "\00\00\00\00\00\00\00\00"
    "\00\00\00\00\00\00\00\00" "\00\00\00\00\00\00\00\00")
  ;; reads: one pointer, ""
  (data (i32.const 1300) "\00\00\00\00\00\00\00\00")

  (func (export "cabi_realloc") (param i32 i32 i32 i32) (result i32)
    (local $at i32)
    (local.set $at (i32.and (i32.add (global.get $next) (i32.const 7)) (i32.const -8)))
    (global.set $next (i32.add (local.get $at) (local.get 3)))
    (local.get $at))

  ;; The value of the digit at an address; lower case only.
  (func $digit (param i32) (result i32)
    (local $byte i32)
    (local.set $byte (i32.load8_u (local.get 0)))
    (if (result i32) (i32.ge_u (local.get $byte) (i32.const 97))
      (then (i32.sub (local.get $byte) (i32.const 87)))
      (else (i32.sub (local.get $byte) (i32.const 48)))))

  ;; The arguments stand in memory, the settings' address and length 92 bytes into them.
  (func $echo (param $arguments i32) (result i32)
    (local $from i32) (local $end i32) (local $to i32)
    (local.set $from (i32.load offset=92 (local.get $arguments)))
    (local.set $end
      (i32.add (local.get $from) (i32.load offset=96 (local.get $arguments))))
    (local.set $to (i32.const 2000))
    (block $done
      (loop $more
        (br_if $done (i32.ge_u (local.get $from) (local.get $end)))
        (i32.store8 (local.get $to)
          (i32.add
            (i32.shl (call $digit (local.get $from)) (i32.const 4))
            (call $digit (i32.add (local.get $from) (i32.const 1)))))
        (local.set $from (i32.add (local.get $from) (i32.const 2)))
        (local.set $to (i32.add (local.get $to) (i32.const 1)))
        (br $more)))
    (i32.const 2000))

  (func (export "describe") (result i32) (i32.const 1000))
  (func (export "mutate") (param i32) (result i32) (call $echo (local.get 0)))
  (func (export "validate") (param i32) (result i32) (call $echo (local.get 0))))
