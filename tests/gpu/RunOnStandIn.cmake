# The quick GPU tests on the emulator: they pass, and they notice wrong results, faults, crashes and hangs.
# -DBUNDLE=… -DTESTS=… (programs) -DKERNELS=… (catalogue) -DWORK=… (folder of the stand-in driver)
set(folder ${WORK}/quick)
set(units ${WORK}/units)
file(MAKE_DIRECTORY ${folder} ${units})
execute_process(COMMAND ${BUNDLE} -o ${folder} --kernels ${KERNELS} --group quick COMMAND_ERROR_IS_FATAL ANY)
file(WRITE ${units}/bundle ${folder}/bundle)

# Runs the tests with the given options while the stand-in misbehaves as `fault` says; sets `status` and `output`.
function(run fault)
  file(WRITE ${units}/fault "${fault}\n")
  execute_process(
    COMMAND ${CMAKE_COMMAND} -E env LD_LIBRARY_PATH=${WORK} ${TESTS} ${folder} --quick --journal ${folder}/journal ${ARGN}
    RESULT_VARIABLE status OUTPUT_VARIABLE output ERROR_VARIABLE output)
  set(status "${status}" PARENT_SCOPE)
  set(output "${output}" PARENT_SCOPE)
endfunction()

function(expect wantedStatus pattern what)
  if(NOT status EQUAL wantedStatus OR NOT output MATCHES "${pattern}")
    file(REMOVE ${units}/fault ${units}/bundle)
    message(FATAL_ERROR "${what}: exit code ${status}, expected ${wantedStatus} and ${pattern}\n${output}")
  endif()
endfunction()

run("none 0")
expect(0 "checks: [0-9]+, failed 0;.*all ok" "right kernels")
message(STATUS "${output}")
run("wrong 5" --no-launch --only w-block)
expect(1 "FAIL .*of its bound at .*failed [1-9]" "one wrong element")
run("wrong 3" --no-matrix --only graph)
expect(1 "FAIL launch: graph replay" "one wrong element of a graph")
run("fault 9" --no-launch --only w-block)
expect(1 "LOST .*waiting for the kernel.*starting another" "a fault")
run("crash 9" --no-launch --only w-block)
expect(1 "LOST .*the process died of signal.*starting another" "a crash")
run("hang 9" --no-launch --only w-block --hang-seconds 1)
expect(1 "LOST .*has not ended after.*starting another" "a hang")
file(REMOVE ${units}/fault ${units}/bundle)
