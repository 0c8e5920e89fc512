# Configuration of the lit tests: where tools are, which files are tests.
import os

import lit.formats

config.name = "moejit"
config.test_format = lit.formats.ShTest(execute_external=False)
config.suffixes = [".mlir", ".test"]
config.test_source_root = os.path.dirname(__file__)
config.test_exec_root = os.path.join(config.moejit_build_dir, "tests", "lit")
config.substitutions.append(("%kernels", os.path.join(config.moejit_source_dir, "kernels")))
config.substitutions.append(("%docs", os.path.join(config.moejit_source_dir, "docs")))
config.substitutions.append(("%cases", os.path.join(config.moejit_source_dir, "tests", "cases")))

tools = [config.llvm_tools_dir]
tools += [os.path.join(config.moejit_build_dir, "tools", name) for name in ("moejit-opt", "moejit")]
tools.append(os.path.join(config.moejit_build_dir, "bin"))
config.environment["PATH"] = os.pathsep.join(tools + [config.environment.get("PATH", "")])
if os.path.exists(os.path.join(config.moejit_build_dir, "tools", "moejit", "moejit")):
    config.available_features.add("moejit")
