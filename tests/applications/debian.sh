# Sourced by what is installed from Debian's packages: `debian PACKAGE…` installs those that aren't there, without the services that
# some of them would start.
debian() {
  dpkg -s "$@" >/dev/null 2>&1 && return
  local policy=/usr/sbin/policy-rc.d made=
  if [[ ! -e $policy ]]; then
    printf '#!/bin/sh\nexit 101\n' >$policy
    chmod +x $policy
    made=1
  fi
  DEBIAN_FRONTEND=noninteractive apt-get -o DPkg::Lock::Timeout=300 install -y --no-install-recommends "$@" || local failed=1
  [[ -z $made ]] || rm -f $policy
  [[ -z ${failed:-} ]]
}
