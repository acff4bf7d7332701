# Steps with their durations, and the result of the tests. Sourced by the scripts beside it.

failed_steps=()
passed=0
failed=0

# Runs a command quietly; its output is shown when it fails. Later steps run all the same, so
# that one run reports everything that is wrong.
step() { # step NAME COMMAND...
  local name=$1 started=$SECONDS log
  shift
  log=$(mktemp)
  if "$@" >"$log" 2>&1 8>&-; then
    printf '%-28s ok      %4d s\n' "$name" $((SECONDS - started))
  else
    printf '%-28s FAILED  %4d s\n' "$name" $((SECONDS - started))
    sed 's/^/    /' "$log"
    failed_steps+=("$name")
    broken+="FAILED: $name: $(grep -m1 '^error' "$log" || tail -n 1 "$log")"$'\n'
  fi
  rm -f "$log"
}

# Runs a command that runs tests (cargo-nextest or cargo test), shows its output, names what passed only at
# the second try, and adds what it counted to the result.
tests() { # tests NAME COMMAND...
  local name=$1 started=$SECONDS log status=0 before=$failed
  shift
  log=$(mktemp)
  "$@" 2>&1 8>&- | tee "$log" || status=1
  passed=$((passed + $(counted passed "$log")))
  failed=$((failed + $(counted failed "$log") + $(counted 'timed out' "$log") + $(counted 'exec failed' "$log")))
  if [ "$status" != 0 ] && [ "$failed" = "$before" ]; then
    echo "$name: a test target did not build or ended without a result: counted as one failure"
    failed=$((failed + 1))
  fi
  flaky+=$(sed -n 's/^ *FLAKY [0-9/]* \[[^]]*\] *\(([^)]*)\)\? */flaky: /p' "$log" | sort -u)
  flaky=${flaky:+${flaky%$'\n'}$'\n'}
  [ "$status" = 0 ] || broken+=$(broken_tests "$log"
    sed -n "s/^warning: \(.* tests were not run\)/FAILED: $name: \1/p" "$log")$'\n'
  rm -f "$log"
  [ "$failed" = "$before" ] || failed_steps+=("$name")
  printf '%-28s %-7s %4d s\n' "$name" "$([ "$failed" = "$before" ] && echo ok || echo FAILED)" $((SECONDS - started))
}
flaky=
broken=

# The tests that cargo-nextest lists as failed after its summary, each with the first thing that its last try
# said of it: of a run elsewhere one may see no more than the last lines.
broken_tests() { # broken_tests LOG
  awk '
    function name_in(line) {sub(/^[^]]*\] *(\([^)]*\) *)?/, "", line); return line}
    /^ *(TRY [0-9]+ )?(FAIL|TIMEOUT|ABORT|LEAK-FAIL|SIG[A-Z]+|XFAIL) .*\]/ {
      current = name_in($0)
      if (!after) delete reason[current]
      else if (!(current in told)) {told[current] = 1; names[++count] = current}
      next
    }
    /^ *Summary \[/ {after = 1}
    wanted {sub(/^ */, ""); reason[current] = reason[current] " " $0; wanted = 0}
    current != "" && !(current in reason) && /panicked at |^ *Error: |^error/ {
      sub(/^ */, ""); reason[current] = $0; wanted = /panicked at /
    }
    END {
      for (i = 1; i <= count && i <= 10; i++) printf "FAILED: %s: %.300s\n", names[i], reason[names[i]]
      if (count > 10) printf "FAILED: and %d more\n", count - 10
    }' "$1"
}

# Ends the script with `N passed, N failed`.
finish() { # finish [WHAT-WAS-LEFT-OUT]
  printf '%s' "$flaky"
  [ "${#failed_steps[@]}" = 0 ] || echo "failed: ${failed_steps[*]}"
  [ -z "${1:-}" ] || echo "$1"
  printf '%s' "$broken" | sed '/^$/d'
  echo "$passed passed, $failed failed"
  [ "${#failed_steps[@]}" = 0 ]
}

# Sums one number over the lines of results: `Summary [ 3 s] 9 tests run: 8 passed (1 flaky), 1 failed`
# of nextest, `test result: ok. 3 passed; 0 failed` of cargo test.
counted() { # counted passed|failed|... LOG
  awk -v what="$1" '/^test result: / || /^ *Summary \[/{
    n = split($0, part, /[:,;.(]/)
    for (i = 1; i <= n; i++) if (part[i] ~ "^ *[0-9]+ " what " *$") {split(part[i], word, " "); sum += word[1]}
  } END {print sum + 0}' "$2"
}
