"""Programs that run against the installed wheels."""

ECHO = """
import json, pathlib
import numpy as np
from neuropod import load_neuropod

folder = pathlib.Path("echo.neuropod/0/data")
folder.mkdir(parents=True)
spec = lambda name: {"name": name, "dtype": "float32", "shape": ["n"]}
config = {"name": "echo", "platform": "echo", "format_version": 1,
          "input_spec": [spec("x")], "output_spec": [spec("y")]}
pathlib.Path("echo.neuropod/config.json").write_text(json.dumps(config))
model = {"outputs": {"y": {"op": "identity", "input": "x"}}}
(folder / "echo.json").write_text(json.dumps(model))
with load_neuropod("echo.neuropod") as model:
    direct = model.infer({"x": np.ones(2, "float32")})["y"].tolist()
with load_neuropod("echo.neuropod", use_ope=True) as model:
    x = model.allocate("x", (2,))
    x[:] = 1
    assert model.infer({"x": x})["y"].tolist() == direct
print(direct)
"""

EVERYDAY = """
import numpy as np
import neuropod
from neuropod import ProblemAPI, create_random_neuropod, load_neuropod
from neuropod.signing import create_key_pair, sign_package

spec = lambda name: {"name": name, "dtype": "float32", "shape": ("n",)}
api = ProblemAPI(inputs=[spec("x")], outputs=[spec("y")])
api.to_file("api.json")
for name in ("first", "second"):
    create_random_neuropod(f"{name}.neuropod", ProblemAPI.from_file("api.json"), model_name=name)
wider = ProblemAPI(inputs=[spec("x"), spec("z")], outputs=[spec("y")])
create_random_neuropod("other.neuropod", wider)
create_key_pair("a.private.pem", "a.public.pem")
create_key_pair("b.private.pem", "b.public.pem")
sign_package("second.neuropod", "a.private.pem")

lines, calls = [], []
neuropod.set_log_sink(lambda level, message, *place: lines.append(message))
neuropod.set_log_level("DEBUG")
neuropod.set_metrics_callback(calls.append)
x = np.ones(3, "float32")
with load_neuropod("first.neuropod", swappable=True, allow_native_code=False) as model:
    model.infer({"x": x})
    try:
        model.swap("other.neuropod")
    except neuropod.InvalidArgumentError as error:
        assert "input 'z' is new and required" in str(error)
    model.swap("second.neuropod")
    model.infer({"x": x})
    assert (model.name, model.stats()["calls"], len(calls)) == ("second", 1, 2)
    assert 'neuropod_calls_total{model="second"' in neuropod.metrics_text()
    assert 'model="first"' not in neuropod.metrics_text()
    assert "second" in repr(model) and "<table" in model._repr_html_()
assert lines
load_neuropod("second.neuropod", require_signature="a.public.pem").close()
try:
    load_neuropod("second.neuropod", require_signature="b.public.pem")
except neuropod.InvalidPackageError as error:
    print("refused")
"""

PROGRAM = """
#include <neuropod/neuropod.hh>
#include <cstdio>

int main(int, char** argv) {
  neuropod::Neuropod model(argv[1]);
  const auto x = model.allocate_tensor<float>({2});
  x->copy_from({1, 2});
  const auto outputs = model.infer({{"x", x}, {"y", x}});
  const auto* out = outputs->at("out")->as_tensor();
  std::printf("%g\\n", out->as_typed_tensor<float>()->get_data_as_vector()[1]);
}
"""
