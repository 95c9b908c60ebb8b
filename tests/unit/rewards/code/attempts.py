"""Programs that try things which a sandbox has to refuse, and say what became of each."""

# What an attempt prints when the sandbox lets it through.
TRY = """
def attempt(function, *arguments):
    try:
        function(*arguments)
    except BaseException as error:
        print("no", type(error).__name__)
    else:
        print("OUT")
import ctypes, os, resource, signal, socket, sys
"""


def attempts(*lines: str) -> str:
    return TRY + "".join(f"attempt(lambda: {line})\n" for line in lines)
