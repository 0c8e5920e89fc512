"""moejit check: exit codes, what is printed where, and JSON."""

import json
import os
import struct

from harness import ROOT, CliTest, main

CONFIGS = ROOT / "tests/cases/configs"
QWEN = CONFIGS / "reconstructed--Qwen3-Next-80B-A3B-Instruct-FP8.json"


class Check(CliTest):
    def config(self, name, base=CONFIGS / "ambiguous--I192-odd-blocks.json", **fields):
        return self.write(name, json.dumps({**json.loads(base.read_text()), **fields}))

    def test_a_checkpoint_that_works(self):
        done = self.moejit("check", QWEN, "--tp", 4)
        self.assertEqual(done.err, "")
        for part in ("qwen3_next: 512 experts (top 10), H 2048, I 512, gated, shared experts of I 512",
                     "block 128x128 weights x dynamic group 128 activations", "works     transformers",
                     "gate_up         512      256   2048  [512, 2, 16]", "shared down",
                     "moejit               grouped"):
            self.assertIn(part, done.out)
        # The summary comes before the details.
        self.assertLess(done.out.index("works  "), done.out.index("known by"))

    def test_a_refused_split(self):
        done = self.moejit("check", QWEN, "--tp", 8, "--engine", "sglang", expect=1)
        for part in ("does not  sglang 0.5.23 (refused)", "sglang-block-rows: refused",
                     "I 512 / tp 8 = 64, block 128x128", "rows of gate and of up", "columns of down",
                     "tp        1, 2, 4 with fused_moe", "ep        tp 1 with ep 8 works",
                     "nearest   sglang 0.5.23: tp 1, 2, 4 with fused_moe, or tp 1 with ep 8",
                     "note      the shared experts are split too"):
            self.assertIn(part, done.out)
        self.moejit("check", QWEN, "--ep", 8, "--engine", "sglang")
        self.moejit("check", QWEN, "--tp", 8)  # of all engines, some works
        done = self.moejit("check", QWEN, "--tp", 7, expect=1)
        self.assertIn("512 cannot be split over tp 7", done.out)

    def test_requirements(self):
        self.moejit("check", QWEN, "--require", "vllm:triton", "--require", "moejit:grouped")
        done = self.moejit("check", QWEN, "--tp", 8, "--require", "sglang:fused_moe", expect=1)
        self.assertIn("unmet     --require sglang:fused_moe", done.out)
        static = CONFIGS / "ambiguous--static-per-tensor-batched.json"
        self.moejit("check", static, "--require", "moejit:grouped")
        done = self.moejit("check", static, "--require", "moejit:batched", expect=1)
        self.assertIn("MJ001 (moejit's own rule): refused", done.out)
        for bad in ("vllm", "vllm:tritn", "moejit:masked", "all:triton", "x:y"):
            self.assertIn("error: ", self.moejit("check", QWEN, "--require", bad, expect=2).err)

    def test_versions_that_nobody_read_are_unknown(self):
        done = self.moejit("check", QWEN, "--engine", "vllm@99.0", "--json", expect=1)
        verdicts = done.json()["checkpoints"][0]["verdicts"]
        self.assertEqual({each["outcome"] for each in verdicts}, {"unknown"})
        self.assertEqual({each["evidence"] for each in verdicts}, {"unknown"})
        self.assertIn("no engine 'vlm'", self.moejit("check", QWEN, "--engine", "vlm", expect=2).err)

    def test_posts_and_pre_releases_are_no_version_that_was_read(self):
        for version in ("0.33.0.post9", "0.33.0rc1", "abc"):
            done = self.moejit("check", QWEN, "--engine", f"vllm@{version}", expect=1)
            self.assertIn(f"vllm {version} is no version that was read (0.33.0)", done.out)
            self.assertNotIn("runs as", done.out)
        self.moejit("check", QWEN, "--engine", "vllm@0.33.0+cu129")

    def test_e5m2_weights_and_mxfp8_on_sm100_are_never_fine(self):
        quantization = {"quant_method": "fp8", "activation_scheme": "dynamic", "weight_block_size": [128, 128]}
        for name, changes, arch in (("e5m2.json", {"fmt": "e5m2"}, "sm_90a"),
                                    ("mx.json", {"quant_method": "mxfp8"}, "sm_100a")):
            config = self.config(name, base=QWEN, quantization_config={**quantization, **changes})
            done = self.moejit("check", config, "--arch", arch, "--json", expect=1)
            outcomes = {each["outcome"] for each in done.json()["checkpoints"][0]["verdicts"]}
            self.assertIn("unknown", outcomes)
            self.assertFalse(outcomes & {"runs as configured", "runs as something else"})

    def test_a_projection_that_is_not_fp8_decides_nothing(self):
        group = {"targets": ["Linear"], "weights": {"num_bits": 8, "type": "float", "strategy": "channel"},
                 "input_activations": {"num_bits": 8, "type": "float", "strategy": "token", "dynamic": True}}
        half = self.config("half.json", base=QWEN, quantization_config={
            "quant_method": "compressed-tensors", "config_groups": {"g": group}, "ignore": ["re:.*(gate|up)_proj$"]})
        done = self.moejit("check", half, "--engine", "vllm", "--require", "moejit:grouped")
        for part in ("works     vllm 0.33.0 (triton, cutlass, marlin*)",
                     "note      gate_up of the experts is not FP8 (ignored)",
                     "vllm-deepgemm-pair (down)"):
            self.assertIn(part, done.out)

    def test_an_engine_named_twice_is_asked_once(self):
        for twice in ("vllm,vllm", "vllm,vllm@0.33.0"):
            done = self.moejit("check", QWEN, "--engine", twice, "--require", "vllm@0.33.0:triton")
            self.assertEqual(done.out.count("  triton "), 1)

    def test_each_version_that_is_asked_for_has_to_work(self):
        done = self.moejit("check", QWEN, "--engine", "vllm@0.33.0,vllm@99", expect=1)
        self.assertIn("unmet     vllm 99 has no dispatch that works", done.out)
        done = self.moejit("check", QWEN, "--require", "vllm@99:triton", expect=1)
        self.assertIn("unmet     --require vllm@99:triton", done.out)
        self.moejit("check", QWEN, "--require", "vllm@0.33.0:triton")
        self.moejit("check", QWEN, "--engine", "vllm@0.33.0,vllm@99", "--require", "vllm:triton", expect=1)

    def test_what_files_say_steers_no_terminal(self):
        strange = self.config("strange.json", model_type="a\x1b[31mred\nworks     everything")
        for path in (strange, strange.parent):
            self.assertNotIn("\x1b", self.moejit("check", path).out)
        self.assertIn("a\\x1b[31mred\\x0aworks", self.moejit("check", strange).out)
        done = self.moejit("check", self.config("method.json", quantization_config={"quant_method": "\x1bfp8"}), expect=2)
        self.assertNotIn("\x1b", done.err)

    def test_pipes_in_a_folder_are_passed_over(self):
        folder = self.folder / "pipes"
        folder.mkdir()
        for name in ("config.json", "other.json"):
            os.mkfifo(folder / name)
        self.assertIn("no config.json", self.moejit("check", folder, expect=2).err)
        (folder / "model.json").write_text(QWEN.read_text())
        self.moejit("check", folder)
        (folder / "gone.json").symlink_to("nowhere")
        self.assertIn("gone.json", self.moejit("check", folder, expect=2).err)

    def test_a_checkpoint_that_is_there_in_part_is_not_judged_by_the_rest(self):
        folder = self.folder / "model"
        folder.mkdir()
        config = json.loads((CONFIGS / "ambiguous--I192-odd-blocks.json").read_text())
        del config["quantization_config"]
        (folder / "config.json").write_text(json.dumps(config))
        self.moejit("check", folder, expect=3)
        beside = folder / "hf_quant_config.json"
        for text in ("", "[]", "{}", "null", '{"quantization": null}'):
            beside.write_text(text)
            self.assertIn("hf_quant_config.json", self.moejit("check", folder, expect=2).err)
        beside.unlink()
        for target in ("nowhere", "hf_quant_config.json", "."):
            beside.symlink_to(target)
            self.assertIn("cannot read", self.moejit("check", folder, expect=2).err)
            beside.unlink()
        (folder / "config.json").rename(folder / "generation_config.json")
        (folder / "config.json").symlink_to("blobs/absent")
        for path in (folder, self.folder):
            self.assertIn("model/config.json: No such file", self.moejit("check", path, expect=2).err)

    def test_nothing_to_do(self):
        for name, reason in (("ambiguous--fp8-ignore-experts", "excluded"),
                             ("reconstructed--MiniMax-M1-unquantized", "not quantized")):
            done = self.moejit("check", CONFIGS / f"{name}.json", expect=3)
            self.assertIn("nothing to do: ", done.out)
            self.assertIn(reason, done.out)
        self.assertIn("no experts", self.moejit("check", self.write("a.json", "{}"), expect=3).out)

    def test_unusable(self):
        self.assertIn("cannot read", self.moejit("check", "none.json", expect=2).err)
        bad = self.write("bad.json", "{\"num_experts\": ")
        done = self.moejit("check", bad, expect=2)
        self.assertEqual(done.out, "")
        self.assertIn("byte 16", done.err)
        done = self.moejit("check", bad, "--json", expect=2)
        self.assertEqual(done.json()["error"]["code"], "parse-error")
        self.moejit("check", expect=2)
        self.moejit("check", QWEN, "--tp", "0", expect=2)
        self.moejit("check", QWEN, "--arch", "sm_1", expect=2)
        self.assertIn("hidden_size", self.moejit("check", self.config("c.json", hidden_size=2**40), expect=2).err)

    def test_a_folder_of_many(self):
        done = self.moejit("check", CONFIGS, "--engine", "all", "--json", expect=1)
        checkpoints = done.json()["checkpoints"]
        self.assertEqual(len(checkpoints), len(list(CONFIGS.glob("*.json"))))
        self.assertEqual({each["exit"] for each in checkpoints}, {0, 1, 3})
        table = self.moejit("check", CONFIGS, expect=1).out
        self.assertEqual(len(table.splitlines()), len(checkpoints) + 1)
        many = self.folder / "many"
        many.mkdir()
        (many / "good.json").write_text(QWEN.read_text())
        (many / "bad.json").write_text("{")
        done = self.moejit("check", many, "--json", expect=2)
        self.assertEqual([each["exit"] for each in done.json()["checkpoints"]], [2, 0])
        self.assertIn("bad.json", done.err)

    def test_json_has_it_all(self):
        found = self.moejit("check", QWEN, "--tp", 2, "--json").json()
        self.assertEqual((found["tp"], found["ep"], found["arch"], found["exit"]), (2, 1, "sm_90a", 0))
        model = found["checkpoints"][0]
        self.assertEqual(model["routed"]["up"]["block"], [128, 128])
        self.assertEqual([gemm["projection"] for gemm in model["gemms"]],
                         ["gate_up", "down", "shared gate_up", "shared down"])
        self.assertTrue(all(each["compiles"] for each in model["moejit"]))
        # A spec that check prints is one that the other commands take.
        launch = next(each for each in model["gemms"][0]["launches"]
                      if each["dispatch"] == "grouped" and each["input"] == "fp8")
        compiled = self.moejit("compile", "--spec", launch["spec"], "--emit", "moe")
        self.assertIn("moe.gemm grouped", compiled.out)

    def test_kernels_of_ranks_that_begin_inside_a_block_are_right(self):
        small = self.config("small.json", hidden_size=256, num_experts=2)
        for gemm in self.moejit("check", small, "--tp", 2, "--json").json()["checkpoints"][0]["gemms"]:
            launch = next(each for each in gemm["launches"] if each["dispatch"] == "grouped"
                          and each["input"] == "fp8" and each["ranks"] == [1])
            self.assertIn("phase=[0,", launch["spec"])
            done = self.moejit("run", "--spec", launch["spec"], "--tokens", 12, "--device", "emulator", "--check",
                               "--no-cache")
            self.assertIn("equal to the oracle", done.out)

    def test_tensors_are_looked_for(self):
        folder = self.folder / "model"
        folder.mkdir()
        config = json.loads((CONFIGS / "ambiguous--static-per-tensor-batched.json").read_text())
        config.update(num_experts=2, num_hidden_layers=1, moe_intermediate_size=16, hidden_size=32)
        (folder / "config.json").write_text(json.dumps(config))
        tensors, at = {}, 0
        for expert in range(2):
            for projection, shape in (("gate_proj", [16, 32]), ("up_proj", [16, 32]), ("down_proj", [32, 16])):
                for kind, dtype, extents, size in (("weight", "F8_E4M3", shape, 512), ("weight_scale", "F32", [], 4),
                                                   ("input_scale", "F32", [1], 4)):
                    name = f"model.layers.0.mlp.experts.{expert}.{projection}.{kind}"
                    tensors[name] = {"dtype": dtype, "shape": extents, "data_offsets": [at, at + size]}
                    at += size

        def save():
            header = json.dumps(tensors).encode()
            (folder / "model.safetensors").write_bytes(struct.pack("<Q", len(header)) + header + bytes(at))

        save()
        done = self.moejit("check", folder)
        self.assertIn("every expert has its scales, of the right shape and type", done.out)
        self.assertIn("values of static scales were not read", done.out)
        # What an index places in a file that lacks it is missing; in a file that is not here, it is known by name.
        index = folder / "model.safetensors.index.json"
        name = "model.layers.0.mlp.experts.1.up_proj.input_scale"
        kept = tensors.pop(name)
        for file, code in (("model.safetensors", 1), ("model-2.safetensors", 0)):
            index.write_text(json.dumps({"weight_map": {**{each: "model.safetensors" for each in tensors}, name: file}}))
            save()
            done = self.moejit("check", folder, expect=code)
            self.assertIn("model.safetensors lacks 1 tensor that the index places there" if code else
                          "1 of 18 tensors of experts are in no file here: their shapes and types are not known", done.out)
            self.assertNotIn("of the right shape", done.out)
        index.unlink()
        index.symlink_to("nowhere")
        self.assertIn("model.safetensors.index.json", self.moejit("check", folder, expect=2).err)
        index.unlink()
        tensors[name] = kept
        del tensors["model.layers.0.mlp.experts.1.up_proj.input_scale"]
        save()
        done = self.moejit("check", folder, expect=1)
        self.assertIn("layer 0, up_proj, expert 1: no activation scale", done.out)
        self.assertIn("unmet     tensors are missing or wrong", done.out)
        (folder / "model.safetensors").write_bytes(b"\xff" * 20)
        self.assertIn("no safetensors file", self.moejit("check", folder, expect=2).err)


if __name__ == "__main__":
    main()
