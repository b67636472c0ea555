#!/bin/sh
# The image's entry point: runs the command it is given in its own place, so that signals reach it; options alone, or a subcommand, are
# those of simclr_train.
case ${1:-} in
  -* | info | loss) set -- simclr_train "$@" ;;
esac
exec "$@"
