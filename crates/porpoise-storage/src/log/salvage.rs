//! Reading what is left of a damaged log.

use std::ops::Range;
use std::path::{Path, PathBuf};

use super::record::{KIND_SEAL, Record, record_len};
use super::segment::{
    MARK_AT, SEGMENT_HEADER_LEN, position_in_name, read_mark, read_segment_header, segment_name,
};
use crate::salvage::ReadOnlyFile;
use crate::{Error, Lsn, Result, StoreId};

/// What can be read of a segment.
pub(crate) struct SalvagedSegment {
    pub path: PathBuf,
    /// The store that it belongs to, if its header tells.
    pub id: Option<StoreId>,
    /// Where it begins and ends.
    pub positions: Range<Lsn>,
    /// Commits, with their positions.
    pub records: Vec<(Lsn, Vec<u8>)>,
    /// From which position on something is lost, in words.
    pub losses: Vec<(Lsn, String)>,
}

impl SalvagedSegment {
    fn note_loss(&mut self, offset: u64, what: &str) {
        let path = self.path.display();
        let what = format!("{path} at offset {offset}: {what}");
        let position = Lsn(self.positions.start.0 + offset);
        self.losses.push((position, what));
    }
}

/// Reads whatever the segments of a damaged log have, oldest first, and writes nothing.
pub(crate) fn salvage_log(folder: &Path) -> Result<Vec<SalvagedSegment>> {
    let mut starts = Vec::new();
    for entry in std::fs::read_dir(folder).map_err(Error::io("read", folder))? {
        let name = entry.map_err(Error::io("read", folder))?.file_name();
        starts.extend(position_in_name(&name));
    }
    starts.sort_unstable();
    let mut log: Vec<SalvagedSegment> = Vec::new();
    let mut expected = starts.first().copied();
    for &start in &starts {
        let path = folder.join(segment_name(start));
        let (mut salvaged, next) = salvage_segment(&path, start)?;
        if let Some(before) = log.last_mut()
            && expected.is_none()
            && !salvaged.records.is_empty()
        {
            // Nothing is written here before the seal of the segment before is on disk.
            let what = "the commits at its end can't be read";
            let what = format!("{}: {what}", before.path.display());
            before.losses.push((before.positions.end, what));
        }
        if expected.is_some_and(|expected| expected != start) {
            let what = format!("the log segment before {} is missing", path.display());
            let from = expected.unwrap_or(start);
            salvaged.losses.insert(0, (Lsn(from), what));
        }
        expected = next;
        log.push(salvaged);
    }
    // A last segment that is sealed is not the last.
    if let (Some(next), Some(last)) = (expected, log.last_mut()) {
        let what = format!("{} is missing", folder.join(segment_name(next)).display());
        last.losses.push((Lsn(next), what));
    }
    Ok(log)
}

/// A segment, and where the next one begins, if it says that there is one.
fn salvage_segment(path: &Path, start: u64) -> Result<(SalvagedSegment, Option<u64>)> {
    let bytes = std::fs::read(path).map_err(Error::io("read", path))?;
    let mut salvaged = SalvagedSegment {
        path: path.to_path_buf(),
        id: None,
        positions: Lsn(start)..Lsn(start + bytes.len() as u64),
        records: Vec::new(),
        losses: Vec::new(),
    };
    let header = std::fs::File::open(path).map_err(Error::io("open", path))?;
    let mut capacity = bytes.len() as u64;
    let mut marked = 0;
    match read_segment_header(&ReadOnlyFile(header), path) {
        Ok((segment, id)) => {
            salvaged.id = Some(id);
            capacity = segment.capacity;
            salvaged.positions.end = Lsn(segment.end());
            match read_mark(segment, id, &bytes) {
                Some(mark) => marked = mark.0,
                None => salvaged.note_loss(MARK_AT, "its mark is damaged"),
            }
        }
        Err(error) if error.is_other_format() => return Err(error),
        Err(error) => salvaged.note_loss(0, &error.to_string()),
    }
    if (bytes.len() as u64) < capacity {
        let what = format!("it ends here, and was {capacity} bytes long");
        salvaged.note_loss(bytes.len() as u64, &what);
    }
    let (end, is_sealed) = salvage_records(&bytes, start, &mut salvaged);
    if is_sealed {
        return Ok((salvaged, Some(start + capacity)));
    }
    if start + end < marked {
        let what = format!(
            "the commits from here up to position {} are lost",
            Lsn(marked)
        );
        salvaged.note_loss(end, &what);
    }
    Ok((salvaged, None))
}

/// Collects every whole record, beyond unreadable ones too. Gives the offset behind the last, and
/// whether the segment is sealed there.
fn salvage_records(bytes: &[u8], start: u64, salvaged: &mut SalvagedSegment) -> (u64, bool) {
    let mut offset = SEGMENT_HEADER_LEN;
    loop {
        match Record::read(bytes, start, offset) {
            Some(record) if record.kind == KIND_SEAL => return (offset, true),
            Some(record) => {
                salvaged
                    .records
                    .push((Lsn(start + offset), record.payload.to_vec()));
                offset += record_len(record.payload.len() as u64);
            }
            None => {
                let later = (offset + 8..bytes.len() as u64)
                    .step_by(8)
                    .find(|at| Record::read(bytes, start, *at).is_some());
                let Some(next) = later else {
                    return (offset, false);
                };
                let what = format!("{} bytes of commits can't be read", next - offset);
                salvaged.note_loss(offset, &what);
                offset = next;
            }
        }
    }
}
