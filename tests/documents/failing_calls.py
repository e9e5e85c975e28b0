"""failing_calls.py SOURCE: every public function that can fail is made to fail by one of tests/engine/**/test_failing_*.c,
which see that it leaves what it was given as it was."""
import pathlib
import re
import sys

source = pathlib.Path(sys.argv[1])
headers = "".join(path.read_text() for path in (source / "engine/include/halfstep").glob("*.h"))
functions = set(re.findall(r"HSTEP_API\s+hstep_status\s+(hstep_\w+)\(", headers))
assert len(functions) > 100, "the headers could not be read"
tests = "".join(path.read_text() for path in (source / "tests/engine").glob("**/test_failing_*.c"))
calls = set(re.findall(r"(?:hs_test_refuses\(HSTEP_ERROR_\w+,|runs_out\(|cr_expect_eq\()\s*(hstep_\w+)\(", tests))
# Closing frees in any case, and reports what only the system can refuse.
missing = functions - calls - {"hstep_records_close"}
if missing:
    sys.exit("no test_failing_*.c makes these fail: " + ", ".join(sorted(missing)))
