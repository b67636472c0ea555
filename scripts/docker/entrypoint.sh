#!/bin/sh
# The image's entry point: runs the command it is given in its own place, so that signals reach it; options alone, or a subcommand, are
# those of simclr_train.
case ${1:-} in
  -* | embed | evaluate | export | info | loss | pack | preview | report) set -- simclr_train "$@" ;;
esac
exec "$@"
