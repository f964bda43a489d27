# Writes the packages of echo and fixtures.json into FOLDER: cmake -D FOLDER=… -P echo_fixtures.cmake
cmake_minimum_required(VERSION 3.25)
file(REMOVE_RECURSE "${FOLDER}")

# spec(variable name dtype shape [more]): one entry of a spec, as JSON.
function(spec variable name dtype shape)
  set(${variable} "{\"name\": \"${name}\", \"dtype\": \"${dtype}\", \"shape\": ${shape}${ARGN}}" PARENT_SCOPE)
endfunction()

# package(name inputs outputs model [more keys of the config])
function(package name inputs outputs model)
  file(WRITE "${FOLDER}/${name}/config.json"
       "{\"name\": \"contract_${name}\", \"platform\": \"echo\", \"format_version\": 1, ${ARGN}\n"
       " \"input_spec\": [${inputs}],\n \"output_spec\": [${outputs}]}\n")
  file(WRITE "${FOLDER}/${name}/0/data/echo.json" "{\"device\": true, \"outputs\": {${model}}}\n")
endfunction()

foreach(name x y z bias out double negative)
  spec(${name} ${name} float32 [==[["n"]]==])
endforeach()
set(y_is_x [["y": {"op": "identity", "input": "x"}]])

package(identity "${x}" "${y}" "${y_is_x}")
package(addition "${x}, ${y}" "${out}" [["out": {"op": "sum", "inputs": ["x", "y"]}]])
package(alias "${x}" "${y}, ${z}" "${y_is_x}, \"z\": {\"op\": \"identity\", \"input\": \"x\"}")
package(inplace "${x}" "${y}" [["y": {"op": "increment", "input": "x"}]])
package(stateful "${x}" "${y}" [["y": {"op": "running_sum", "input": "x"}]] "\"stateful\": true,")
spec(optional_bias bias float32 [==[["n"]]==] ", \"optional\": true")
package(optional "${x}, ${optional_bias}" "${y}" [["y": {"op": "sum", "inputs": ["x", "bias"]}]])
spec(fixed y float32 "[3]")
package(parameter "${x}" "${fixed}"
        [["y": {"op": "constant", "dtype": "float32", "shape": [3], "values": [1, 2, 3]}]])
spec(text text string "[1]")
package(outputs "${x}" "${double}, ${negative}, ${text}"
        [["double": {"op": "scale", "input": "x", "by": 2}, "negative": {"op": "scale", "input": "x", "by": -1},
          "text": {"op": "constant", "dtype": "string", "shape": [1], "values": ["done"]}]])
spec(matrix x float32 [==[["rows", "columns"]]==])
spec(transposed y float32 [==[["columns", "rows"]]==])
package(transpose "${matrix}" "${transposed}" [["y": {"op": "transpose", "input": "x"}]])
foreach(name x y out)
  spec(string_${name} ${name} string [==[["n"]]==])
endforeach()
package(strings "${string_x}, ${string_y}" "${string_out}"
        [["out": {"op": "join", "inputs": ["x", "y"], "separator": " "}]])
package(failing "${x}" "${y}" "${y_is_x}")
file(WRITE "${FOLDER}/failing/0/data/echo.json"
     "{\"fail_if_negative\": {\"input\": \"x\", \"message\": \"the first element is negative\"},\n"
     " \"outputs\": {${y_is_x}}}\n")

execute_process(COMMAND "${CMAKE_COMMAND}" -E tar cf "${FOLDER}/identity.zip" --format=zip -- config.json 0
                WORKING_DIRECTORY "${FOLDER}/identity" COMMAND_ERROR_IS_FATAL ANY)

file(WRITE "${FOLDER}/fixtures.json" [[{
  "platform": "echo",
  "model_file": "0/data/echo.json",
  "failing_message": "the first element is negative",
  "packages": {
    "identity": "identity", "identity_zip": "identity.zip", "addition": "addition", "strings": "strings",
    "failing": "failing", "optional": "optional", "stateful": "stateful", "transpose": "transpose",
    "alias": "alias", "inplace": "inplace", "outputs": "outputs", "parameter": "parameter"
  },
  "capabilities": {
    "dtypes": ["float32", "float64", "string", "int8", "int16", "int32", "int64", "uint8", "uint16", "uint32",
               "uint64", "bool", "float16", "bfloat16", "complex64", "complex128"],
    "max_rank": 6,
    "string_ranks": [0, 1, 2, 3, 4, 5, 6],
    "zero_size": true,
    "string_nul": true,
    "zero_copy_in": true,
    "zero_copy_out": true,
    "device": true,
    "outputs_on_device": true,
    "corrupt_model_detected": true
  }
}
]])
