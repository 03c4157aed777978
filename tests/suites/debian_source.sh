# Sourced by what is installed from the sources of Debian's packages: `debian_source PACKAGE` unpacks what is upstream's of one into
# the folder it is called in, by a list of sources of its own. What Debian adds isn't needed, nor is it always to be had.
debian_source() {
  local lists=$PWD/lists names
  mkdir -p "$lists/partial" parts
  local options=(-o Dir::Etc::SourceList=/dev/null -o "Dir::Etc::SourceParts=$PWD/parts" -o "Dir::State::Lists=$lists")
  apt-get indextargets --format 'deb-src $(SITE) $(CODENAME) $(COMPONENT)' 'Created-By: Packages' | sort -u >parts/source.list
  apt-get "${options[@]}" update -qq
  mapfile -t names < <(apt-get "${options[@]}" source --print-uris "$1" | grep -oE '[^ ]+\.orig\.tar\.[a-z]+ ' | tr -d "' " | grep -v / | sort -u)
  apt-get "${options[@]}" source --download-only "$1" || [[ -f ${names[0]} ]]
  tar -xf "${names[0]}"
}
