# Steps with their durations, and the count of tests. Sourced by the scripts beside it.

failed_steps=()
beside=()
beside_logs=()

# Runs a command quietly; its output is shown when it fails. Later steps run all the same, so
# that one run tells everything that is wrong.
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
  fi
  rm -f "$log"
}

# Begins to run tests that wait more than they work, beside others that were begun like this and
# those of run_tests_and_finish, which shows and counts them, too.
run_tests_beside() { # run_tests_beside COMMAND...
  local log
  log=$(mktemp)
  # What a shell runs in the background would not end by Ctrl-C.
  env --default-signal=INT "$@" >"$log" 2>&1 8>&- &
  beside+=($!)
  beside_logs+=("$log")
}

# Runs tests, showing their output, and ends the script with `N passed, N failed`. What --skip filtered
# out is said to be left out, unless lab_is_tested is set.
run_tests_and_finish() { # run_tests_and_finish COMMAND...
  local started=$SECONDS log status=0 number passed failed left_out=0
  log=$(mktemp)
  "$@" 2>&1 8>&- | tee "$log" || status=1
  for number in "${!beside[@]}"; do
    wait "${beside[number]}" || status=1
    tee -a "$log" <"${beside_logs[number]}"
    rm -f "${beside_logs[number]}"
  done
  passed=$(count passed "$log")
  failed=$(count failed "$log")
  [ -n "${lab_is_tested:-}" ] || left_out=$(count filtered "$log")
  rm -f "$log"
  if [ "$status" != 0 ] && [ "$failed" = 0 ]; then
    echo "a test target did not build or ended without a result: counted as one failure"
    failed=1
  fi
  [ "$failed" = 0 ] || failed_steps+=(tests)
  printf '%-28s %-7s %4d s\n' tests "$([ "$failed" = 0 ] && echo ok || echo FAILED)" $((SECONDS - started))
  [ "${#failed_steps[@]}" = 0 ] || echo "failed: ${failed_steps[*]}"
  [ "$left_out" = 0 ] || echo "$left_out tests left out: those of the lab (real nodes)"
  echo "$passed passed, $failed failed"
  [ "${#failed_steps[@]}" = 0 ]
}

# Sums one number over all "test result:" lines that cargo printed.
count() { # count passed|failed|filtered LOG
  awk -v what="$1" '/^test result: /{
    for (i = 2; i <= NF; i++) if ($i ~ "^" what ";?$") sum += $(i - 1)
  } END {print sum + 0}' "$2"
}
