"""`import usage` before everything else: --help prints what a script says about itself, and nothing is run. What takes long
to import, or is not installed, is not needed for that."""
import sys

if {"-h", "--help"} & set(sys.argv[1:]):
    print(sys.modules["__main__"].__doc__.strip())
    sys.exit()
