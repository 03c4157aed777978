# Sourced by what is installed from the sources of Debian's packages: `debian_source PACKAGE` unpacks what is upstream's of one into
# the folder it is called in, by a list of sources of its own: of the newest version that can be had. What Debian adds isn't needed.
debian_source() {
  local lists=$PWD/lists names version
  mkdir -p "$lists/partial" parts
  local options=(-o Dir::Etc::SourceList=/dev/null -o "Dir::Etc::SourceParts=$PWD/parts" -o "Dir::State::Lists=$lists")
  apt-get indextargets --format 'deb-src $(SITE) $(CODENAME) $(COMPONENT)' 'Created-By: Packages' | sort -u >parts/source.list
  apt-get "${options[@]}" update -qq
  for version in $(apt-cache "${options[@]}" showsrc "$1" | sed -n 's/^Version: //p' | sort -urV); do
    mapfile -t names < <(apt-get "${options[@]}" source --print-uris "$1=$version" | grep -oE '[^ ]+\.orig\.tar\.[a-z]+ ' | tr -d "' " | grep -v / | sort -u)
    if apt-get "${options[@]}" source --download-only "$1=$version" || [[ -f ${names[0]} ]]; then
      tar -xf "${names[0]}"
      return
    fi
  done
  return 1
}
