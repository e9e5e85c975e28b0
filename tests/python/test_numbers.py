"""encode, decode and matmul have the policy's bits for any input, and refuse what they cannot take."""

import unittest

import numpy as np
from support import halfstep, main, same_bits, vectors

import model as independent

SPECIAL = [0.0, -0.0, np.inf, -np.inf, np.nan, 65504, 65520, 3.4e38]
SPECIAL += [2.0**-24, 2.0**-25, 2.0**-133, 2.0**-140, 1 + 2**-11]


def expected(precision, a, b):
    with np.errstate(over="ignore", invalid="ignore"):
        return independent.product(precision, np.asarray(a, dtype=np.float64), np.asarray(b, dtype=np.float64))


def random_matrix(shape, seed, special=False):
    source = np.random.default_rng(seed)
    x = source.standard_normal(shape) * 2.0 ** source.integers(-12, 8, size=shape)
    if special:
        flat = x.ravel()
        flat[source.integers(0, flat.size, size=len(SPECIAL))] = SPECIAL
    return x


class Encode(unittest.TestCase):
    def test_worked_values_of_the_golden_file(self):
        cases = vectors("rounding.json")["cases"]
        x = np.array([int(case["bits"], 16) for case in cases], dtype=np.uint64).view(np.float64)
        for form in ("fp16", "bf16"):
            bits = halfstep.encode(x, form)
            self.assertEqual(bits.dtype, np.uint16)
            for got, case in zip(bits, cases):
                nan = 0x7E00 if form == "fp16" else 0x7FC0
                self.assertEqual(int(got), nan if case.get("nan") else int(case[form], 16), case["bits"])

    def test_all_halves_come_back(self):
        every = np.arange(65536, dtype=np.uint16)
        values = halfstep.decode(every, "fp16")
        self.assertTrue(same_bits(values, every.view(np.float16).astype(np.float64)))
        wide = (every.astype(np.uint32) << 16).view(np.float32)
        with np.errstate(invalid="ignore"):
            wide = wide.astype(np.float64)
        self.assertTrue(same_bits(halfstep.decode(every, "bf16"), wide))
        for form in ("fp16", "bf16"):
            x = halfstep.decode(every, form)
            number = ~np.isnan(x)
            self.assertTrue(np.array_equal(halfstep.encode(x, form)[number], every[number]))

    def test_layouts_and_types(self):
        x = random_matrix((7, 10), 1, special=True)
        with np.errstate(over="ignore", invalid="ignore"):
            whole = {form: independent.represent(form, x) for form in ("fp16", "bf16")}
        for form, value in whole.items():
            for y, want in (
                (x, value),
                (np.asfortranarray(x), value),
                (x[::2, ::-3], value[::2, ::-3]),
                (x.astype(">f8"), value),
                (x[:0], value[:0]),
                (x[None, :, None], value[None, :, None]),
            ):
                self.assertTrue(same_bits(halfstep.decode(halfstep.encode(y, form), form), want), y.shape)
        narrow = random_matrix((5, 5), 2).astype(np.float32)
        want = independent.represent("bf16", narrow.astype(np.float64))
        self.assertTrue(same_bits(halfstep.decode(halfstep.encode(narrow, "bf16"), "bf16"), want))
        self.assertEqual(int(halfstep.encode(1.0, "fp16")), 0x3C00)
        self.assertEqual(f"{halfstep.encode(1.0, 'bf16'):04x}", "3f80")
        self.assertEqual(halfstep.encode([True, False], "fp16").tolist(), [0x3C00, 0])

    def test_integers_are_rounded_once(self):
        # Halfway between two numbers of bf16, and a little more: f64 alone would forget the little.
        def through(x):
            return halfstep.decode(halfstep.encode(x, "bf16"), "bf16")

        base = 2**62 + 2**54
        for x, want in ((base, 2**62), (base + 1, 2**62 + 2**55), (-base - 1, -(2**62) - 2**55)):
            self.assertEqual(float(through(np.array(x))), want)
            self.assertEqual(float(halfstep.matmul([[1]], np.array([[x]]), "bf16")[0, 0]), want)
        self.assertEqual(float(through(np.array(2**64 - 1, dtype=np.uint64))), 2.0**64)
        self.assertEqual(float(through(np.array(-(2**63)))), -(2.0**63))
        self.assertTrue(np.array_equal(through(np.arange(-50, 50)), np.arange(-50, 50)))

    def test_refusals(self):
        for call in (lambda: halfstep.encode([1j], "fp16"), lambda: halfstep.encode(["1"], "fp16"),
                     lambda: halfstep.encode([None], "fp16"), lambda: halfstep.decode([1.0], "bf16"),
                     lambda: halfstep.encode(np.zeros(2, dtype=np.longdouble), "fp16")):
            with self.assertRaises(halfstep.DtypeError):
                call()
        with self.assertRaisesRegex(halfstep.ArgumentError, "fp8"):
            halfstep.encode(1.0, "fp8")
        for bits in (-1, 65536):
            with self.assertRaises(halfstep.ArgumentError):
                halfstep.decode([bits], "fp16")


class Matmul(unittest.TestCase):
    def test_bits_of_the_independent_model(self):
        for precision in ("f64", "fp16", "bf16"):
            shapes = ((1, 1, 1), (3, 5, 4), (17, 33, 65), (70, 40, 9), (4, 0, 3), (0, 4, 3), (3, 4, 0), (0, 0, 0))
            for m, k, n in shapes:
                a, b = random_matrix((m, k), m), random_matrix((k, n), n)
                for backend in ("cpu", "cpu-reference"):
                    y = halfstep.matmul(a, b, precision, backend)
                    self.assertTrue(same_bits(y, expected(precision, a, b)), (precision, m, k, n, backend))

    def test_special_numbers(self):
        for precision in ("f64", "fp16", "bf16"):
            for seed in range(4):
                a, b = random_matrix((9, 20), seed, True), random_matrix((20, 11), seed + 9, True)
                self.assertTrue(same_bits(halfstep.matmul(a, b, precision), expected(precision, a, b)))

    def test_layouts_and_types(self):
        a, b = random_matrix((12, 30), 5), random_matrix((30, 8), 6)
        want = {precision: expected(precision, a, b) for precision in ("fp16", "bf16")}
        for precision, y in want.items():
            for left in (a, np.asfortranarray(a), np.repeat(a, 2, axis=1)[:, ::2], a.astype(">f8"), a.tolist()):
                for right in (b, np.asfortranarray(b), b[::-1, ::-1].copy()[::-1, ::-1]):
                    self.assertTrue(same_bits(halfstep.matmul(left, right, precision), y))
        narrow, whole = a.astype(np.float32), np.arange(-120, 120).reshape(30, 8)
        self.assertTrue(same_bits(halfstep.matmul(narrow, whole, "bf16"), expected("bf16", narrow, whole)))
        self.assertTrue(same_bits(halfstep.matmul(whole.T, whole > 0, "fp16"), expected("fp16", whole.T, whole > 0)))
        raw = np.zeros(12 * 30 * 8 + 1, dtype=np.uint8)
        unaligned = raw[1:].view(np.float64).reshape(12, 30)
        unaligned[...] = a
        self.assertTrue(same_bits(halfstep.matmul(unaligned, b), want["fp16"]))

    def test_products_in_parts_are_the_same(self):
        import halfstep.number as number

        a, b = random_matrix((200, 30), 5), random_matrix((30, 8), 6)
        whole, kept = halfstep.matmul(a, b), number._PRODUCTS_A_CALL
        try:
            number._PRODUCTS_A_CALL = 1
            for left in (a, np.asfortranarray(a)):
                self.assertTrue(same_bits(halfstep.matmul(left, b), whole))
        finally:
            number._PRODUCTS_A_CALL = kept

    def test_operands_are_untouched(self):
        a, b = random_matrix((4, 5), 1), random_matrix((5, 4), 2)
        kept = a.copy(), b.copy()
        halfstep.matmul(a, b)
        self.assertTrue(same_bits(a, kept[0]) and same_bits(b, kept[1]))

    def test_refusals(self):
        for a, b in ((np.zeros((2, 3)), np.zeros((2, 3))), (np.zeros(3), np.zeros((3, 2))), (1.0, np.zeros((1, 1))),
                     (np.zeros((2, 3, 4)), np.zeros((4, 2)))):
            with self.assertRaisesRegex(halfstep.ShapeError, "shape"):
                halfstep.matmul(a, b)
        with self.assertRaises(halfstep.DtypeError):
            halfstep.matmul(np.zeros((1, 1), dtype=complex), np.zeros((1, 1)))
        with self.assertRaisesRegex(halfstep.ArgumentError, "fp15"):
            halfstep.matmul([[1]], [[1]], "fp15")
        with self.assertRaisesRegex(halfstep.ArgumentError, "abacus"):
            halfstep.matmul([[1]], [[1]], backend="abacus")


class Gate(unittest.TestCase):
    """Against the policy's section 7, written out here in NumPy."""

    def judge(self, precision, a, b, sums):
        """The figures as the policy defines them."""
        if precision == "f64":
            x, y, step = a, b, 2.0**-52
        else:
            x, y = (independent.represent(precision, it).astype(np.float32) for it in (a, b))
            step = 2.0**-23
        reference, magnitude = np.zeros(sums.shape), np.zeros(sums.shape)
        for k in range(a.shape[1]):
            p = np.outer(x[:, k], y[k])
            reference = (reference.astype(p.dtype) + p).astype(np.float64)
            magnitude += np.abs(p.astype(np.float64))
        distance, mean = np.abs(sums - reference), np.abs(reference).mean()
        relative = distance / np.maximum(np.abs(reference), 0.01 * mean)
        beyond = int((distance > a.shape[1] * step * magnitude).sum())
        return distance.max(), 0.01 * mean, relative.mean(), relative.max(), beyond

    def test_figures_are_those_of_the_policy(self):
        source = np.random.default_rng(3)
        for precision in ("f64", "fp16", "bf16"):
            a, b = source.uniform(-0.2, 0.2, (9, 300)), source.uniform(-0.2, 0.2, (300, 7))
            if precision == "f64":
                x, y = a, b
            else:
                x, y = (independent.represent(precision, it).astype(np.float32) for it in (a, b))
            for sums, passes in ((x @ y, True), ((x @ y).astype(np.float16), False)):
                sums = np.asarray(sums, dtype=np.float64)
                max_abs, limit, mean_rel, max_rel, beyond = self.judge(precision, a, b, sums)
                found = halfstep.gate(sums, a, b, precision)
                self.assertEqual((found.passed, found.max_abs, found.cells_beyond), (passes, max_abs, beyond))
                self.assertEqual((found.cells, found.cells_wrong, found.mean_rel_limit), (63, 0, 0.005))
                for got, want in ((found.max_abs_limit, limit), (found.mean_rel, mean_rel), (found.max_rel, max_rel)):
                    self.assertAlmostEqual(got, want, delta=1e-12 * want)

    def test_results_and_layouts(self):
        a, b = random_matrix((6, 20), 1), random_matrix((20, 5), 2)
        x, y = (independent.represent("bf16", it).astype(np.float32) for it in (a, b))
        sums = x @ y
        results = halfstep.decode(halfstep.encode(sums, "bf16"), "bf16")
        for left, right in ((a, b), (np.asfortranarray(a), b), (a, np.asfortranarray(b)), (a.tolist(), b[:, ::1])):
            self.assertTrue(halfstep.gate(sums, left, right, "bf16", results=results).passed)
        self.assertTrue(halfstep.gate(np.asfortranarray(sums), a, b, "bf16", results=results[::1]).passed)
        results[3, 2] *= 1 + 2**-7
        found = halfstep.gate(sums, a, b, "bf16", results=results)
        self.assertEqual((found.passed, found.cells_wrong), (False, 1))

    def test_infinities_zeros_and_nothing(self):
        a, b = np.ones((3, 4)), np.ones((4, 2))
        sums = np.full((3, 2), 4.0)
        self.assertTrue(halfstep.gate(sums, a, b).passed)
        a[1, 1] = np.inf
        found = halfstep.gate(sums, a, b)
        self.assertEqual((found.passed, found.cells, found.cells_wrong), (False, 4, 2))
        sums[1] = np.nan
        found = halfstep.gate(sums, a, b)
        self.assertEqual((found.passed, found.cells_beyond, found.cells_wrong), (False, 0, 0))
        for shape in ((0, 4, 2), (3, 0, 2), (3, 4, 0)):
            m, k, n = shape
            self.assertFalse(halfstep.gate(np.zeros((m, n)), np.zeros((m, k)), np.zeros((k, n))).passed, shape)

    def test_refusals(self):
        a, b = np.ones((3, 4)), np.ones((4, 2))
        for arguments in ((np.ones((3, 3)), a, b), (np.ones(6), a, b), (np.ones((3, 2)), a, a)):
            with self.assertRaisesRegex(halfstep.ShapeError, "shape"):
                halfstep.gate(*arguments)
        with self.assertRaisesRegex(halfstep.ShapeError, "results have shape"):
            halfstep.gate(np.ones((3, 2)), a, b, results=np.ones((2, 3)))
        with self.assertRaises(halfstep.DtypeError):
            halfstep.gate(np.ones((3, 2), dtype=complex), a, b)
        with self.assertRaisesRegex(halfstep.DtypeError, "sums"):
            halfstep.gate(None, a, b)
        with self.assertRaises(halfstep.ArgumentError):
            halfstep.gate(np.ones((3, 2)), a, b, "fp15")


if __name__ == "__main__":
    main()
