#!/usr/bin/env bash
# Runs a suite or a comparison for the GitHub Action, and writes its summary and its report.
#
#   IOSONDE                   the program
#   SUITE, TARGETS            suite and its targets, one per line
#   BASELINE, RESULT          instead of a suite: the results to compare
#   FAIL_IF_SLOWER            share of `iosonde compare --fail-if-slower`
#   ARGUMENTS                 further arguments, one per line
#   STORE                     file of the history
#   OUTPUT                    folder for report.html and junit.xml
#   GITHUB_STEP_SUMMARY       file to which the Markdown of the result is appended
#   GITHUB_OUTPUT             file to which status, report and junit are appended
#
# The exit status is that of iosonde. Wrong inputs end with status 2.
set -euo pipefail

fail() {
    echo "::error::$1" >&2
    exit 2
}

# Prints the sentence of an exit status that is a verdict.
verdict() {
    case $1 in
    0) echo "Passed." ;;
    6) echo "**Failed:** the second result is significantly slower." ;;
    11) echo "**Failed:** an expectation is missed, or its figure was not measured." ;;
    12) echo "**Undecided:** a longer run or more repetitions decide it." ;;
    *) echo "**Failed:** iosonde ended with status $1. The log of this step has the cause." ;;
    esac
}

# Prints a path only if it is a file.
existing() { if [[ -f $1 ]]; then printf '%s' "$1"; fi; }

iosonde=${IOSONDE:?names the program}
output=${OUTPUT:?names a folder}
mkdir -p "$output"
report=$output/report.html junit=$output/junit.xml
rm -f "$report" "$junit"

targets=() arguments=() store=()
while IFS= read -r line; do [[ -z $line ]] || targets+=("$line"); done <<<"${TARGETS:-}"
while IFS= read -r line; do [[ -z $line ]] || arguments+=("$line"); done <<<"${ARGUMENTS:-}"
[[ -z ${STORE:-} ]] || store=(--store "$STORE")

status=0
if [[ -n ${SUITE:-} ]]; then
    [[ -z ${BASELINE:-}${RESULT:-} ]] || fail "set either suite, or baseline and result"
    title="iosonde run $SUITE"
    markdown=$("$iosonde" run "$SUITE" "${targets[@]}" --format markdown --report "$report" \
        --junit "$junit" "${store[@]}" "${arguments[@]}") || status=$?
elif [[ -n ${BASELINE:-} && -n ${RESULT:-} ]]; then
    ((${#targets[@]} == 0)) || fail "a comparison has no targets"
    title="iosonde compare $BASELINE $RESULT"
    slower=()
    [[ -z ${FAIL_IF_SLOWER:-} ]] || slower=(--fail-if-slower "$FAIL_IF_SLOWER")
    markdown=$("$iosonde" compare "$BASELINE" "$RESULT" --format markdown "${slower[@]}" \
        "${store[@]}" "${arguments[@]}") || status=$?
    "$iosonde" report "$BASELINE" "$RESULT" --output "$report" "${store[@]}" ||
        echo "::warning::the report could not be written" >&2
else
    fail "set suite, or baseline and result"
fi

{
    printf '## %s\n\n' "$title"
    verdict "$status"
    printf '\n%s\n' "$markdown"
} >>"${GITHUB_STEP_SUMMARY:-/dev/stdout}"
{
    echo "status=$status"
    echo "report=$(existing "$report")"
    echo "junit=$(existing "$junit")"
} >>"${GITHUB_OUTPUT:-/dev/null}"
exit "$status"
