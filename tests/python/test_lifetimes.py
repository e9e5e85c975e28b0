"""Arrays over the library's memory stay valid as long as they live, and objects end once, in the right order."""

import gc
import threading
import unittest
import weakref

import numpy as np
from support import FIXTURE, fixture, halfstep, main, same_bits

from halfstep import _handles


class Counting:
    """Counts C objects that are destroyed, and their order."""

    def __enter__(self):
        self.order, self.kept = [], _handles.Handle.__init__
        order, create = self.order, self.kept

        def counted(handle, kind, pointer, destroy, parent=None):
            create(handle, kind, pointer, lambda it: (order.append(kind), destroy(it)), parent)

        _handles.Handle.__init__ = counted
        return self.order

    def __exit__(self, *exception):
        _handles.Handle.__init__ = self.kept


class Views(unittest.TestCase):
    def test_they_look_into_the_model(self):
        model, trainer = fixture("bf16")
        weights = model.parameters["blocks.0.attention.query.weight"]
        first = trainer.first_moments["blocks.0.attention.query.weight"]
        before = weights.copy()
        self.assertTrue(same_bits(weights, model.read("blocks.0.attention.query.weight")))
        trainer.step(FIXTURE)
        self.assertFalse(same_bits(weights, before))
        self.assertTrue(same_bits(weights, model.read("blocks.0.attention.query.weight")))
        self.assertGreater(np.abs(first).max(), 0)
        again = model.parameters["blocks.0.attention.query.weight"]
        self.assertTrue(np.shares_memory(again, weights))
        for array in (weights, first, trainer.gradients["final_norm.gain"], weights[1:]):
            with self.assertRaises(ValueError):
                array[...] = 0
            with self.assertRaises(ValueError):
                array.flags.writeable = True
        self.assertEqual(list(model.parameters), list(model.shapes))
        with self.assertRaises(KeyError):
            model.parameters["no.such"]

    def test_editing_raises_the_revision(self):
        model, trainer = fixture("bf16")
        loss, revision = model.loss(FIXTURE), model.revision("token_embedding.weight")
        with model.edit("token_embedding.weight") as table:
            table *= 2
        self.assertEqual(model.revision("token_embedding.weight"), revision + 1)
        changed = model.loss(FIXTURE)
        self.assertNotEqual(changed, loss)
        other, _ = fixture("bf16")
        other.write("token_embedding.weight", other.read("token_embedding.weight") * 2)
        self.assertEqual(other.loss(FIXTURE), changed)
        with self.assertRaises(ValueError):
            table[0, 0] = 1
        with self.assertRaises(RuntimeError):
            with model.edit("token_embedding.weight") as table:
                table[0, 0] = 5
                raise RuntimeError
        self.assertEqual(model.revision("token_embedding.weight"), revision + 2)

    def test_they_outlive_their_owners(self):
        with Counting() as order:
            model, trainer = fixture("fp16")
            weights, moments = model.parameters["final_norm.gain"][1:], trainer.second_moments["final_norm.gain"]
            kept = weights.copy()
            trainer.close()
            model.close()
            model.context.close()
            self.assertTrue(trainer.closed and model.closed and model.context.closed)
            del model, trainer
            gc.collect()
            self.assertEqual(order, [])
            self.assertTrue(same_bits(weights, kept))
            del moments
            self.assertEqual(order, ["trainer"])
            self.assertTrue(same_bits(weights, kept))
            del weights
            self.assertEqual(order, ["trainer", "model", "context"])

    def test_a_new_one_is_refused_after_the_end(self):
        model, trainer = fixture("fp16")
        parameters, gradients = model.parameters, trainer.gradients
        context = model.context
        context.close()
        for call in (lambda: parameters["final_norm.gain"], lambda: gradients["final_norm.gain"],
                     lambda: model.checksum(), lambda: trainer.step(FIXTURE), lambda: trainer.loss_scale,
                     lambda: context.backend, lambda: halfstep.matmul([[1]], [[1]], context=context),
                     lambda: model.generate([0], 1), lambda: halfstep.Trainer(model), lambda: model.edit("final_norm.gain").__enter__()):
            with self.assertRaises(halfstep.ClosedError):
                call()

    def test_closing_twice_and_with(self):
        with halfstep.Context("cpu", threads=1) as context:
            self.assertEqual((context.backend, context.threads), ("cpu", 1))
        context.close()
        self.assertTrue(context.closed)
        model, trainer = fixture("fp16")
        trainer.close()
        halfstep.Trainer(model).step(FIXTURE)  # the place is free again


class Order(unittest.TestCase):
    def test_collected_in_any_order(self):
        with Counting() as order:
            for _ in range(3):
                model, trainer = fixture("fp16")
                view = model.parameters["final_norm.gain"]
                cycle = {"model": model, "context": model.context, "trainer": trainer, "view": view}
                cycle["self"] = cycle
                trainer.callbacks.append(lambda *_, cycle=cycle: None)
                gone = weakref.ref(model)
                del model, trainer, view, cycle
                gc.collect()
                self.assertIsNone(gone())
            self.assertEqual(order, ["trainer", "model", "context"] * 3)

    def test_a_failed_construction_leaves_nothing(self):
        with Counting() as order:
            with self.assertRaises(halfstep.ArgumentError):
                halfstep.Decoder(halfstep.DecoderConfig(258, 5, 1, 2, 8), halfstep.Context("cpu", threads=1))
            gc.collect()
            self.assertEqual(order, ["context"])

    def test_what_another_thread_uses_waits(self):
        with Counting() as order:
            context = halfstep.Context("cpu", threads=1)
            model = halfstep.Decoder(halfstep.DecoderConfig(258, 4, 1, 2, 8), context)
            inside, go_on = threading.Event(), threading.Event()

            def compute():
                with context._handle.domain:
                    inside.set()
                    go_on.wait()

            thread = threading.Thread(target=compute)
            thread.start()
            inside.wait()
            del model
            gc.collect()
            self.assertEqual(order, [])
            go_on.set()
            thread.join()
            self.assertEqual(order, ["model"])
            del context

    def test_batches_live_through_the_call(self):
        model, trainer = fixture("bf16")
        for _ in range(20):
            trainer.step({"tokens": np.array([0, 99, 100]).astype(">i8"), "targets": [99, 100, 1]})
        twin, other = fixture("bf16")
        other.run([FIXTURE] * 20)
        self.assertEqual(model.checksum(), twin.checksum())


if __name__ == "__main__":
    main()
