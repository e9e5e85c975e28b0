"""Training from Python is training from C: the independent model's gradients, the trainer's weights, skips, threads."""

import dataclasses
import os
import signal
import subprocess
import sys
import tempfile
import threading
import time
import unittest
from pathlib import Path

import numpy as np
from support import FIXTURE, fixture, halfstep, main, same_bits, vectors

import model as independent

SMALL = halfstep.DecoderConfig(258, 16, 1, 2, 32, precision="bf16")


def train(context, seed, steps=20, **settings):
    """The checksum of a small decoder after some steps."""
    model = halfstep.Decoder(SMALL, context)
    model.initialize("normal", seed)
    trainer = halfstep.Trainer(model, **settings)
    tokens = np.random.default_rng(seed).integers(0, 258, size=(4, 17))
    for _ in range(steps):
        trainer.step({"tokens": tokens[:, :-1], "targets": tokens[:, 1:]})
    return model.checksum()


class Decoder(unittest.TestCase):
    def test_first_loss_and_gradients_are_the_golden_ones(self):
        for precision, name in (("f64", "f64"), ("fp16", "fp16-fp32"), ("bf16", "bf16-fp32")):
            golden = vectors(f"fixture-{name}.json")
            model, trainer = fixture(precision, scaler=halfstep.Scaler(1, 1, 1, 2000))
            self.assertEqual((len(model.parameters), model.scalars), (golden["tensors"], golden["scalars"]))
            self.assertAlmostEqual(trainer.record(FIXTURE), golden["loss"], delta=1e-12)
            self.assertAlmostEqual(model.loss(FIXTURE), golden["loss"], delta=1e-12)
            np.testing.assert_allclose(model.output(FIXTURE).ravel()[:8], golden["logits"], rtol=0, atol=1e-12)
            trainer.backward()
            for tensor, want in golden["gradients"].items():
                gradient = trainer.gradients[tensor]
                self.assertEqual(list(gradient.shape), want["shape"])
                self.assertAlmostEqual(np.sqrt(np.sum(gradient**2)), want["l2"], delta=1e-3 * want["l2"])
                self.assertAlmostEqual(np.abs(gradient).max(), want["max_abs"], delta=1e-3 * want["max_abs"])

    def test_updates_are_those_of_the_independent_model(self):
        model, trainer = fixture("f64")
        twin = independent.Fixture("f64")
        optimizer = independent.AdamW(twin)
        for _ in range(3):
            loss, logits, kept = twin.forward()
            norm = optimizer.commit(twin.backward(logits, kept, 1.0), 1.0)
            update = trainer.step(FIXTURE)
            self.assertAlmostEqual(update.loss, loss, delta=1e-12)
            self.assertAlmostEqual(update.gradient_norm, norm, delta=1e-11)
        for name, weights in model.parameters.items():
            np.testing.assert_allclose(weights, twin.w[name], rtol=0, atol=1e-11)
            np.testing.assert_allclose(trainer.first_moments[name], optimizer.m[name], rtol=0, atol=1e-11)
            np.testing.assert_allclose(trainer.second_moments[name], optimizer.v[name], rtol=0, atol=1e-11)

    def test_skips_are_those_of_the_recorded_probe(self):
        model, trainer = fixture("fp16", scaler=halfstep.Scaler(128, 1, 2.0**24, 2))
        trainer.step(FIXTURE)
        trainer.set_scaler(halfstep.Scaler(2.0**24, 1, 2.0**24, 2))
        before = trainer.snapshot()
        seen = []
        trainer.callbacks.append(lambda of, update: seen.append((of, update)))
        first = trainer.step(FIXTURE)
        self.assertTrue(first.skipped and not first.applied)
        self.assertEqual((first.overflow.operation, first.overflow.kind), ("head", "inf"))
        self.assertEqual(first.next_loss_scale, 2.0**23)
        self.assertEqual(trainer.snapshot(), before)
        explanation = trainer.explain(FIXTURE)
        self.assertEqual(explanation.overflow.operation, "head")
        self.assertGreater(sum(it.to_infinity + it.infinities for it in explanation.operands), 0)
        updates = trainer.run([FIXTURE])
        self.assertEqual([it.applied for it in updates], [False] * 7 + [True])
        self.assertEqual((updates[-1].loss_scale, updates[-1].step, trainer.optimizer_step), (65536, 2, 2))
        self.assertEqual([update for _, update in seen], [first, *updates])
        self.assertNotEqual(trainer.snapshot(), before)
        self.assertIsNone(trainer.explain(FIXTURE))
        stuck = halfstep.Scaler(2.0**24, 2.0**24, 2.0**24, 2)
        trainer.set_scaler(stuck)
        with self.assertRaises(halfstep.TooManySkipsError) as caught:
            trainer.run([FIXTURE], max_skips=3)
        self.assertEqual(caught.exception.operation, "head")

    def test_windows(self):
        tokens = np.random.default_rng(3).integers(0, 258, size=(4, 9))
        batch = {"tokens": tokens[:, :-1], "targets": tokens[:, 1:]}
        parts = [{name: array[i : i + 2] for name, array in batch.items()} for i in (0, 2)]
        whole, _ = fixture("f64")
        self.assertAlmostEqual(whole.loss(batch), whole.loss(parts), delta=1e-12)
        model, trainer = fixture("f64", micro_batches=2)
        self.assertEqual(trainer.step(parts).tokens, 32)
        with self.assertRaises(halfstep.ShapeError):
            trainer.step(batch)

    def test_what_saves_memory_changes_no_bit(self):
        context = halfstep.Context("cpu", threads=1)
        plain = train(context, 5, 3)
        for head_rows in (1, 13, 64):  # of 64
            for recompute in (False, True):
                self.assertEqual(train(context, 5, 3, head_rows=head_rows, recompute=recompute), plain)
        with self.assertRaises(halfstep.ArgumentError):
            train(context, 5, 1, head_rows=-1)

    def test_checkpoints_go_on_with_the_same_bits(self):
        with tempfile.TemporaryDirectory() as folder:
            path = Path(folder) / "c.safetensors"
            model, trainer = fixture("bf16")
            trainer.run([FIXTURE] * 2)
            trainer.save(path, {"mine": b"\0bytes", "empty": b""})
            trainer.run([FIXTURE] * 2)
            self.assertEqual(halfstep.read_section(path, "mine"), b"\0bytes")
            self.assertEqual(halfstep.read_section(path, "empty"), b"")
            again, other = fixture("bf16")
            other.load(path)
            self.assertEqual(other.optimizer_step, 2)
            other.run([FIXTURE] * 2)
            self.assertEqual((again.checksum(), other.attempts), (model.checksum(), trainer.attempts))
            for name in model.shapes:
                self.assertTrue(same_bits(other.second_moments[name], trainer.second_moments[name]))
            weights, _ = fixture("fp16")
            weights.load_weights(path)
            self.assertNotEqual(weights.checksum(), model.checksum())
            with self.assertRaises(halfstep.InputFileError):
                other.load(Path(folder) / "missing")
            with self.assertRaises(halfstep.OutputFileError):
                other.save(Path(folder) / "no" / "folder")

    def test_generation_is_greedy_choice_from_the_output(self):
        model, trainer = fixture("bf16", schedule=halfstep.Schedule(0.01))
        trainer.run([FIXTURE] * 5)
        tokens = model.generate([0, 99], 6)
        for at in range(2, 8):
            self.assertEqual(tokens[at], np.argmax(model.output({"tokens": tokens[:at]})[0, -1]))
        two = model.generate([[0, 99], [0, 100]], 3, temperature=1.0, seed=4)
        self.assertEqual(two.shape, (2, 5))
        self.assertTrue(np.array_equal(two, model.generate([[0, 99], [0, 100]], 3, temperature=1.0, seed=4)))


class AsTheTrainer(unittest.TestCase):
    def test_weights_of_a_run_of_the_program(self):
        """`trainer train` and the package reach the same weights from the same data, seed and settings."""
        self.compare("fp16", {})

    def test_weights_of_a_run_with_precision_by_place(self):
        self.compare("bf16", {"head": "f64", "blocks.0.*": "fp16", "*.attention": "bf16"})

    def compare(self, precision, places):
        text = "".join(f"{i * 7 % 31} and {i * 5 % 17};" for i in range(300))
        with tempfile.TemporaryDirectory() as folder:
            (Path(folder) / "text.txt").write_text(text)
            command = [os.environ["HALFSTEP_TRAINER"], "train", "--data", f"{folder}/text.txt", "--precision", precision,
                       "--precision-for", ",".join(f"{name}={it}" for name, it in places.items()) or "none",
                       "--steps", "6", "--batch-size", "2", "--context", "16", "--width", "8", "--layers", "1",
                       "--heads", "2", "--feed-forward", "16", "--seed", "5", "--threads", "1", "--backend", "cpu",
                       "--levers", "exact", "--schedule", "constant", "--warmup-steps", "0", "--learning-rate", "0.001",
                       "--quiet", "--out", f"{folder}/run"]
            subprocess.run(command, check=True)
            run = halfstep.read_records(f"{folder}/run", "run")[0]
            records = halfstep.read_records(f"{folder}/run")
            updates = [record for record in records if record["record"] == "update"]
        shape, settings = run["model"], run["configuration"]
        model = halfstep.Decoder(
            halfstep.DecoderConfig(shape["vocabulary"], shape["width"], shape["layers"], shape["heads"],
                                   shape["feed_forward"], shape["kv_heads"], precision=precision,
                                   precision_for=places),
            halfstep.Context("cpu", threads=1))
        model.initialize(settings["init"], settings["seed"])
        trainer = halfstep.Trainer(
            model,
            adamw=halfstep.AdamW(settings["beta1"], settings["beta2"], settings["epsilon"], settings["weight-decay"],
                                 settings["grad-clip"]),
            schedule=halfstep.Schedule(settings["learning-rate"]))
        data = halfstep.Dataset(text=text)
        self.assertEqual(len(data), len(text))
        done = trainer.run(data.batches(6, 2, 16, settings["seed"]))
        self.assertEqual([it.loss for it in done], [it["loss"] for it in updates])
        self.assertEqual(records[-1]["record"], "end")
        self.assertEqual(f"{model.checksum():016x}", records[-1]["weights_checksum"])
        held_out = [batch.inputs for batch in data.evaluation(16)]
        tokens, targets = (np.concatenate([it[name].ravel() for it in held_out]) for name in ("tokens", "targets"))
        end = halfstep.encode_text(text)[run["data"][0]["training_tokens"] :]
        self.assertTrue(np.array_equal(tokens[targets >= 0], end[:-1]))
        self.assertTrue(np.array_equal(targets[targets >= 0], end[1:]))


class Places(unittest.TestCase):
    def decoder(self, precision, places):
        return halfstep.Decoder(halfstep.DecoderConfig(258, 4, 1, 2, 8, precision=precision, precision_for=places),
                                halfstep.Context("cpu", threads=1))

    def test_the_last_that_fits_counts(self):
        model = self.decoder("bf16", {"*": "fp16-fp32", "blocks.0.feed_forward.*": "f64", "*.down": "bf16"})
        names = [f"attention{it}" for it in (".query", ".key", ".value", "", ".output")]
        names += [f"feed_forward.{it}" for it in ("gate", "up", "down")]
        want = dict(zip([f"blocks.0.{it}" for it in names], ["fp16-fp32"] * 5 + ["f64", "f64", "bf16-fp32"]))
        self.assertEqual(model.products, {**want, "head": "fp16-fp32"})
        self.assertEqual(list(model.products), [*want, "head"])
        for precision, places, scale in (("bf16", {"head": "fp16"}, 65536), ("fp16", {"*": "f64"}, 1)):
            self.assertEqual(halfstep.Trainer(self.decoder(precision, places)).loss_scale, scale)

    def test_refusals(self):
        for places, words in (({"haed": "f64"}, 'the nearest is "head"'), ({"final_norm": "f64"}, "is no product"),
                              ({"head": "f32"}, "f32"), ({"": "f64"}, "pattern"), ("head=f64", "dictionary"),
                              ({"*" * 96: "f64"}, "longer")):
            with self.assertRaisesRegex(halfstep.ArgumentError, words):
                self.decoder("bf16", places)

    def test_nodes_of_a_graph(self):
        g = halfstep.Graph()
        x = g.input("x", (halfstep.ROWS, 3))
        for name in ("one", "two"):
            x = g.matmul(x, g.parameter(f"{name}.weight", (3, 3)), "bf16", name=name)
        self.assertEqual(g.precision, "bf16-fp32")
        g.set_precision("t*o", "fp16")
        self.assertEqual((g.products, g.precision), ({"one": "bf16-fp32", "two": "fp16-fp32"}, "fp16-fp32"))
        with self.assertRaisesRegex(halfstep.ArgumentError, "three"):
            g.set_precision("three", "f64")
        g.set_output(x)
        g.set_loss(g.sum(x))
        with self.assertRaises(halfstep.ArgumentError):
            g.set_precision("one", "f64")
        model = halfstep.Model(g, halfstep.Context("cpu", threads=1))
        model.initialize("xavier", 1)
        rows = np.array([[0.1, 2, -3]])
        by_hand = halfstep.matmul(halfstep.matmul(rows, model.read("one.weight"), "bf16"), model.read("two.weight"), "fp16")
        self.assertTrue(same_bits(model.output({"x": rows}), by_hand))
        self.assertEqual(halfstep.Trainer(model).loss_scale, 65536)


class Graphs(unittest.TestCase):
    def perceptron(self, precision="bf16"):
        g = halfstep.Graph()
        x, wanted = g.input("x", (halfstep.ROWS, 2)), g.input("wanted", (halfstep.ROWS, 1))

        def linear(name, x, width, out):
            weight, bias = g.parameter(f"{name}.weight", (out, width)), g.parameter(f"{name}.bias", (out,))
            return g.add_bias(g.matmul(x, weight, precision, transpose_b=True, name=name), bias)

        y = linear("out", g.silu(linear("hidden", x, 2, 8)), 8, 1)
        difference = wanted - y
        g.set_output(y)
        g.set_loss(g.sum(difference * difference))
        return halfstep.Model(g, halfstep.Context("cpu", threads=1))

    def test_exclusive_or(self):
        model = self.perceptron()
        self.assertEqual(model.precision, "bf16-fp32")
        model.initialize("xavier", 3)
        trainer = halfstep.Trainer(model, adamw=halfstep.AdamW(weight_decay=0), schedule=halfstep.Schedule(0.03))
        x = np.array([[0, 0], [0, 1], [1, 0], [1, 1]])
        trainer.run([halfstep.Batch({"x": x, "wanted": [[0], [1], [1], [0]]}, weight=4)] * 200)
        y = model.output({"x": x})
        self.assertEqual(y.shape, (4, 1))
        self.assertEqual([f"{it:.2f}" for it in y.ravel()], ["0.00", "0.99", "1.00", "0.00"])  # as docs/embedding.md

    def test_gradients_are_central_differences(self):
        model = self.perceptron("f64")
        model.initialize("xavier", 7)
        trainer = halfstep.Trainer(model)
        batch = {"x": [[0.3, -1], [2, 0.5]], "wanted": [[1], [-1]]}
        trainer.record(batch)
        trainer.backward()
        gradient = trainer.gradients["hidden.weight"].copy()
        trainer.clear()
        for i in ((0, 0), (3, 1), (7, 0)):
            losses = []
            for step in (1e-6, -2e-6):
                with model.edit("hidden.weight") as weight:
                    weight[i] += step
                losses.append(model.loss(batch))
            with model.edit("hidden.weight") as weight:
                weight[i] += 1e-6
            self.assertAlmostEqual((losses[0] - losses[1]) / 2e-6, gradient[i], delta=1e-7)

    def test_refusals(self):
        g = halfstep.Graph()
        x = g.input("x", (halfstep.ROWS, 3))
        with self.assertRaises(halfstep.ArgumentError):
            g.input("x", (2,))
        with self.assertRaises(halfstep.ShapeError) as caught:
            g.matmul(x, g.parameter("w", (4, 5)), "bf16", name="product")
        self.assertEqual(caught.exception.operation, "product")
        with self.assertRaises(halfstep.ArgumentError):
            halfstep.Graph().sum(x)
        with self.assertRaises(halfstep.ArgumentError):
            halfstep.Model(g)
        self.assertEqual(x.shape, (halfstep.ROWS, 3))  # a refused graph stays usable
        g.set_loss(g.sum(g.multiply(x, x)))
        model = halfstep.Model(g)
        with self.assertRaises(halfstep.ClosedError):
            g.sum(x)
        self.assertEqual(model.loss({"x": [[1, 2, 3]]}), 14)
        for batch, error in (({"x": [[1, 2]]}, halfstep.ShapeError), ({"x": [1, 2, 3]}, halfstep.ShapeError),
                             ({"y": [[1, 2, 3]]}, halfstep.ArgumentError), ({}, halfstep.ArgumentError),
                             ({"x": [["a", "b", "c"]]}, halfstep.DtypeError),
                             (halfstep.Batch({"x": [[1, 2, 3]]}, sequences=2, length=3), halfstep.ShapeError)):
            with self.assertRaises(error):
                model.loss(batch)


class Refusals(unittest.TestCase):
    def test_batches(self):
        model, trainer = fixture("bf16")
        before = trainer.snapshot()
        for batch, error in (({"tokens": [0, 258], "targets": [1, 1]}, halfstep.TokenError),
                             ({"tokens": [0, 2**40], "targets": [1, 1]}, halfstep.TokenError),
                             ({"tokens": [0, -(2**40)], "targets": [1, 1]}, halfstep.TokenError),
                             ({"tokens": [0.5, 1], "targets": [1, 1]}, halfstep.DtypeError),
                             ({"tokens": [0, 1], "targets": [1]}, halfstep.ShapeError),
                             ({"tokens": [[0, 1]], "targets": [[1], [1]]}, halfstep.ShapeError),
                             ({"tokens": [0, 1], "targets": [-1, -1]}, halfstep.NoTargetsError),
                             ({"tokens": [], "targets": []}, halfstep.DtypeError),
                             ({"tokens": np.zeros(0, int), "targets": np.zeros(0, int)}, halfstep.ShapeError),
                             ({"tokens": [0, 1]}, halfstep.ArgumentError)):
            with self.assertRaises(error, msg=batch):
                trainer.step(batch)
        for window in (None, 5, "tokens", [[0, 1], [1, 1]], [FIXTURE, None]):
            with self.assertRaisesRegex(halfstep.DtypeError, "batch", msg=window):
                trainer.step(window)
        self.assertEqual(trainer.snapshot(), before)

    def test_zero_bytes_do_not_cut_names_and_paths(self):
        _, trainer = fixture("bf16")
        with tempfile.TemporaryDirectory() as folder:
            kept = os.path.join(folder, "kept")
            trainer.save(kept, {"notes": b"1"})
            for refused in (lambda: trainer.save(kept + "\0new"), lambda: trainer.load(kept + "\0"),
                            lambda: trainer.save(kept, {"notes\0": b"2"}),
                            lambda: halfstep.read_section(kept, "notes\0more"),
                            lambda: halfstep.Dataset([kept + "\0"]), lambda: halfstep.Context("cpu", levers="none\0"),
                            lambda: halfstep.Decoder(halfstep.DecoderConfig(258, 4, 2, 2, 8,
                                                                            precision_for={"head\0": "f64"}))):
                with self.assertRaisesRegex(halfstep.ArgumentError, "zero byte"):
                    refused()
            self.assertEqual(os.listdir(folder), ["kept"])
            self.assertEqual(halfstep.read_section(kept, "notes"), b"1")

    def test_settings_that_fit_no_field_are_named(self):
        decoder = halfstep.DecoderConfig(258, 4, 2, 2, 8)
        for name, value, error in (("layers", -1, halfstep.ArgumentError), ("kv_heads", 2**70, halfstep.ArgumentError),
                                   ("width", 4.0, halfstep.DtypeError), ("rms_epsilon", "x", halfstep.DtypeError)):
            with self.assertRaisesRegex(error, f"^{name} is "):
                halfstep.Decoder(dataclasses.replace(decoder, **{name: value}))
        model = halfstep.Decoder(decoder)
        for settings, error in (({"head_rows": -1}, halfstep.ArgumentError), ({"replicas": 2**64}, halfstep.ArgumentError),
                                ({"micro_batches": 1.5}, halfstep.DtypeError),
                                ({"scaler": halfstep.Scaler(1, 1, 1, -1)}, halfstep.ArgumentError)):
            with self.assertRaisesRegex(error, "^(head_rows|replicas|micro_batches|growth_interval) is "):
                halfstep.Trainer(model, **settings)
        with self.assertRaisesRegex(halfstep.DtypeError, "^callbacks "):
            halfstep.Trainer(model, callbacks=[None])
        with self.assertRaisesRegex(halfstep.ArgumentError, "^count is -5"):
            model.generate([1], -5)
        self.assertTrue(halfstep.Trainer(model).step(FIXTURE).applied)

    def test_callbacks(self):
        """One that raises leaves the update committed, one that takes itself off the list hides no other."""
        _, trainer = fixture("bf16")
        seen = []

        def once(trainer, update):
            trainer.callbacks.remove(once)
            raise RuntimeError("once")

        def leaving(trainer, update):
            trainer.callbacks.remove(leaving)

        trainer.callbacks += [once]
        with self.assertRaisesRegex(RuntimeError, "once"):
            trainer.step(FIXTURE)
        self.assertEqual(trainer.optimizer_step, 1)
        trainer.callbacks += [leaving, lambda trainer, update: seen.append(update.applied)]
        trainer.step(FIXTURE)
        self.assertEqual(seen, [True])
        for skips in (0, -1):
            with self.assertRaisesRegex(halfstep.ArgumentError, "max_skips"):
                trainer.run([FIXTURE], max_skips=skips)
        self.assertEqual(trainer.attempts, 2)

    def test_statuses_and_settings(self):
        model, trainer = fixture("bf16")
        with self.assertRaises(halfstep.StaleTapeError):
            trainer.backward()
        trainer.record(FIXTURE)
        with model.edit("final_norm.gain") as gain:
            gain[0] = 2
        with self.assertRaises(halfstep.StaleTapeError):
            trainer.backward()
        with self.assertRaises(halfstep.MissingGradientError):
            trainer.commit()
        trainer.record(FIXTURE)
        trainer.backward()
        with self.assertRaises(halfstep.DirtyGradientError):
            trainer.step(FIXTURE)
        trainer.clear()
        with self.assertRaises(halfstep.ArgumentError):
            halfstep.Trainer(model)
        model.write("final_norm.gain", [np.inf, 1, 1, 1])
        with self.assertRaises(halfstep.NonfiniteForwardError) as caught:
            trainer.step(FIXTURE)
        self.assertNotEqual(caught.exception.operation, "")
        self.assertIsInstance(caught.exception, ArithmeticError)
        with self.assertRaises(halfstep.ShapeError):
            model.write("final_norm.gain", [1, 1, 1])
        with self.assertRaises(KeyError):
            model.read("no.such")
        with self.assertRaises(halfstep.ArgumentError):
            fixture("bf16", schedule=halfstep.Schedule(-1))
        with self.assertRaises(halfstep.BackendUnavailableError):
            halfstep.Context("vulkan", device="no such device")
        with self.assertRaises(halfstep.ArgumentError):
            halfstep.Context("cpu", threads=5000)


class Threads(unittest.TestCase):
    def test_two_contexts_in_two_threads(self):
        alone = [train(halfstep.Context("cpu", threads=1), seed) for seed in (1, 2)]
        self.assertNotEqual(*alone)
        together = {}

        def work(seed):
            together[seed] = train(halfstep.Context("cpu", threads=1), seed)

        threads = [threading.Thread(target=work, args=(seed,)) for seed in (1, 2)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        self.assertEqual([together[1], together[2]], alone)

    def test_one_context_in_two_threads_takes_turns(self):
        context, results = halfstep.Context("cpu", threads=1), {}
        threads = [threading.Thread(target=lambda s=seed: results.update({s: train(context, s)})) for seed in (1, 2)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        self.assertEqual([results[1], results[2]], [train(halfstep.Context("cpu", threads=1), seed) for seed in (1, 2)])

    def test_other_threads_run_while_it_computes(self):
        a = np.ones((600, 600))
        halfstep.matmul(a, a, backend="cpu-reference")
        ticks, done = [], threading.Event()

        def tick():
            while not done.wait(0.0005):
                ticks.append(time.perf_counter())

        thread = threading.Thread(target=tick)
        thread.start()
        start = time.perf_counter()
        halfstep.matmul(a, a, backend="cpu-reference")
        end = time.perf_counter()
        done.set()
        thread.join()
        # Without the lock given up, the other thread stands still from one end to the other.
        inside = [it for it in ticks if start + 0.2 * (end - start) < it < end - 0.2 * (end - start)]
        self.assertGreater(len(inside), 0)

    def interrupt(self, prepare, compute, look):
        """Ctrl-C in the midst of what would take hours; `look` then sees that all is whole."""
        program = (
            "import sys; sys.path[:0] = sys.argv[1:]\n"
            "from support import *\n"
            f"{prepare}\n"
            "print('ready', flush=True)\n"
            "try:\n"
            f"    {compute}\n"
            "except KeyboardInterrupt:\n"
            f"    {look}\n"
            "    print('whole', flush=True)\n"
        )
        command = [sys.executable, "-B", "-c", program, str(Path(__file__).parent)]
        child = subprocess.Popen(command, stdout=subprocess.PIPE, text=True)
        self.assertEqual(child.stdout.readline(), "ready\n")
        time.sleep(0.3)
        child.send_signal(signal.SIGINT)
        self.assertEqual(child.communicate(timeout=60)[0], "whole\n")
        self.assertEqual(child.returncode, 0)

    def test_interrupt_ends_a_loop_of_steps(self):
        self.interrupt("model, trainer = fixture('bf16')", "while True: trainer.step(FIXTURE)",
                       "assert trainer.optimizer_step == trainer.attempts > 0; trainer.step(FIXTURE)")

    def test_interrupt_ends_a_long_call(self):
        training = "model, trainer = fixture('bf16')"
        after = "assert trainer.optimizer_step == trainer.attempts > 0; trainer.step(FIXTURE)"
        self.interrupt(training, "trainer.run(FIXTURE for _ in iter(int, 1))", after)
        self.interrupt(training, "model.loss([FIXTURE] * 10**7)", "trainer.step(FIXTURE)")
        self.interrupt(training, "model.generate([0], 10**6, capacity=64)", "trainer.step(FIXTURE)")

    def test_interrupt_ends_a_long_product(self):
        matrix = "a = np.broadcast_to(np.ones((1, 1)), (200000, 300))"
        self.interrupt(matrix, "halfstep.matmul(a, np.ones((300, 4000)), backend='cpu-reference')",
                       "assert halfstep.matmul([[2]], [[3]])[0, 0] == 6")


if __name__ == "__main__":
    main()
